// The inner loops of the floating-point dtypes; see inner_loops_impl.h.
#include "ir/inner_loops_impl.h"

namespace ufuse::ir::loops {

InnerLoop find_Float16(Op op) { return find<rt::f16, DType::Float16>(op); }
InnerLoop find_Float32(Op op) { return find<rt::f32, DType::Float32>(op); }
InnerLoop find_Float64(Op op) { return find<rt::f64, DType::Float64>(op); }
InnerLoop find_LongDouble(Op op) { return find<rt::ld, DType::LongDouble>(op); }
InnerLoop find_Complex64(Op op) { return find<rt::c64, DType::Complex64>(op); }
InnerLoop find_Complex128(Op op) { return find<rt::c128, DType::Complex128>(op); }
InnerLoop find_CLongDouble(Op op) { return find<rt::cld, DType::CLongDouble>(op); }

}  // namespace ufuse::ir::loops
