// The inner loops of the unsigned integers; see inner_loops_impl.h.
#include "ir/inner_loops_impl.h"

namespace ufuse::ir::loops {

InnerLoop find_UInt8(Op op) { return find<rt::u8, DType::UInt8>(op); }
InnerLoop find_UInt16(Op op) { return find<rt::u16, DType::UInt16>(op); }
InnerLoop find_UInt32(Op op) { return find<rt::u32, DType::UInt32>(op); }
InnerLoop find_UInt64(Op op) { return find<rt::u64, DType::UInt64>(op); }

}  // namespace ufuse::ir::loops
