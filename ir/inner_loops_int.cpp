// The inner loops of bool and the signed integers; see inner_loops_impl.h.
#include "ir/inner_loops_impl.h"

namespace ufuse::ir::loops {

InnerLoop find_Bool(Op op) { return find<rt::b8, DType::Bool>(op); }
InnerLoop find_Int8(Op op) { return find<rt::i8, DType::Int8>(op); }
InnerLoop find_Int16(Op op) { return find<rt::i16, DType::Int16>(op); }
InnerLoop find_Int32(Op op) { return find<rt::i32, DType::Int32>(op); }
InnerLoop find_Int64(Op op) { return find<rt::i64, DType::Int64>(op); }

}  // namespace ufuse::ir::loops
