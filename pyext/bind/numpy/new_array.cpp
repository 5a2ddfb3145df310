// See new_array.h. Large memory comes through NumPy's interface for allocators (NEP 49): the array
// owns it like any other, and gives it back to our pool when it dies.
#include "pyext/bind/numpy/new_array.h"

#include <algorithm>
#include <cstring>

#include "codegen/runtime/memory.h"
#include "numpy_shim/layout.h"

namespace ufuse::pyext {
namespace {

// Smaller memory is kept by malloc. Memory of this size malloc gives back to the kernel, sometimes
// at each call, depending on where the heap ends: on 156 KiB the same loop took 7 or 217 us.
constexpr std::size_t kLarge = std::size_t{128} << 10;

// Stands before the array's memory, which stays aligned like it.
struct alignas(64) Header {
  std::size_t capacity;
};

codegen::ScratchPool& pool() {
  static auto* const one = new codegen::ScratchPool;  // arrays may outlive everything of ours
  return *one;
}

void* allocate(void*, std::size_t bytes) {
  try {
    if (bytes > SIZE_MAX - sizeof(Header)) return nullptr;
    codegen::Scratch scratch = pool().take(bytes + sizeof(Header));
    const std::size_t capacity = scratch.capacity();
    return new (scratch.release()) Header{capacity} + 1;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

void release(void*, void* data, std::size_t) {
  if (data == nullptr) return;
  Header* const header = static_cast<Header*>(data) - 1;
  pool().give_back(header, header->capacity);
}

void* allocate_zeros(void* context, std::size_t count, std::size_t size) {
  if (size != 0 && count > SIZE_MAX / size) return nullptr;
  void* const data = allocate(context, count * size);
  return data == nullptr ? nullptr : std::memset(data, 0, count * size);
}

void* reallocate(void* context, void* data, std::size_t bytes) {
  void* const made = allocate(context, bytes);
  if (made == nullptr || data == nullptr) return made;
  const std::size_t had = (static_cast<Header*>(data) - 1)->capacity - sizeof(Header);
  std::memcpy(made, data, std::min(had, bytes));
  release(context, data, had);
  return made;
}

PyObject* handler() {
  static PyDataMem_Handler functions = {
      "ufuse", 1, {nullptr, allocate, allocate_zeros, reallocate, release}};
  static PyObject* const capsule = PyCapsule_New(&functions, "mem_handler", nullptr);
  return capsule;
}

// While one lives, NumPy allocates from our pool, unless the program has chosen an allocator
// itself.
class OurAllocator {
 public:
  OurAllocator() : before_(steal(PyDataMem_SetHandler(handler()))) {
    if (!before_.is(borrow(PyDataMem_DefaultHandler))) restore();
  }
  ~OurAllocator() {
    if (before_) restore();
  }
  OurAllocator(const OurAllocator&) = delete;
  OurAllocator& operator=(const OurAllocator&) = delete;

 private:
  void restore() {
    Py_XDECREF(PyDataMem_SetHandler(before_.ptr()));
    before_ = {};
  }
  py::object before_;
};

}  // namespace

py::object new_array(const Layout& layout, const py::object& descr) {
  std::optional<OurAllocator> ours;
  if (numpy_shim::bytes_of(layout) >= kLarge) ours.emplace();
  return steal(PyArray_NewFromDescr(
      &PyArray_Type, reinterpret_cast<PyArray_Descr*>(py::object(descr).release().ptr()),
      static_cast<int>(layout.shape.size()),
      const_cast<npy_intp*>(reinterpret_cast<const npy_intp*>(layout.shape.data())),
      const_cast<npy_intp*>(reinterpret_cast<const npy_intp*>(layout.strides.data())), nullptr, 0,
      nullptr));
}

}  // namespace ufuse::pyext
