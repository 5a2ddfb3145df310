// See replay.h.
#include "pyext/bind/replay/replay.h"

#include <algorithm>

#include "codegen/runtime/timeline.h"
#include "numpy_shim/layout.h"
#include "numpy_shim/ufunc.h"
#include "pyext/bind/call/warning_watch.h"
#include "pyext/bind/numpy/new_array.h"
#include "pyext/bind/numpy/numpy_redo.h"
#include "pyext/bind/numpy/python_number.h"
#include "pyext/bind/numpy/repeated_call.h"
#include "pyext/bind/signals.h"
#include "pyext/bind/waiting.h"

namespace ufuse::pyext {
namespace {

// Loops on less memory take less time than giving Python's lock away and getting it back,
constexpr std::size_t kKeepLockBytes = 64 * 1024;
constexpr double kKeepLockNs = 1e6;  // unless they compute much for each element

void copy_into(const py::object& target, const py::object& source) {
  if (PyArray_CopyInto(reinterpret_cast<PyArrayObject*>(target.ptr()),
                       reinterpret_cast<PyArrayObject*>(source.ptr())) < 0)
    throw py::error_already_set();
}

}  // namespace

Recording::Recording(const Call& call, ResultTree results, bool may_warn)
    : plan_(call.session().plan()), results_(std::move(results)), stores_(call.objects().stores()) {
  if (may_warn && plan_->sole) sole_ = call.line_of(plan_->sole->site);
  for (const tracer::PlanRun& run : plan_->runs) {
    first_output_.push_back(output_descrs_.size());
    for (const tracer::PlanInput& input : run.inputs) bytes_ += numpy_shim::bytes_of(input.layout);
    for (const tracer::PlanOutput& output : run.outputs) {
      bytes_ += numpy_shim::bytes_of(output.layout);
      output_descrs_.push_back(descr_of(output.layout.dtype));
    }
  }
  needless_.resize(plan_->runs.size() + 1);
  for (std::size_t r = 0; r < plan_->runs.size(); ++r)
    for (std::size_t i = 0; i < plan_->runs[r].outputs.size(); ++i)
      if (const std::size_t until = std::max(plan_->runs[r].until[i], r + 1);
          until < needless_.size())
        needless_[until].push_back(first_output_[r] + i);
}

bool Recording::is_path_of(const Recording& other) const {
  return std::ranges::equal(plan_->forced, other.plan_->forced, {}, &tracer::PlanForced::outcome,
                            &tracer::PlanForced::outcome);
}

bool Recording::is_final() const {
  return std::ranges::all_of(plan_->runs, [](const tracer::PlanRun& run) {
    return !run.executable || run.executable->is_final();
  });
}

std::unique_ptr<Recording::AllSlots> Recording::take_slots() {
  if (!idle_.empty()) {
    std::unique_ptr<AllSlots> slots = std::move(idle_.back());
    idle_.pop_back();
    return slots;
  }
  auto all = std::make_unique<AllSlots>();
  for (const tracer::PlanRun& run : plan_->runs) {
    Slots& slots = all->emplace_back();
    for (const tracer::PlanInput& input : run.inputs)
      slots.inputs.push_back(
          {nullptr, input.layout.dtype, input.layout.shape, input.layout.strides});
    for (const tracer::PlanOutput& output : run.outputs) {
      slots.outputs.push_back(
          {nullptr, output.layout.dtype, output.layout.shape, output.layout.strides});
      slots.alias.push_back(output.alias);
      slots.lasting.push_back(output.direct);
    }
    for (const tracer::PlanParam& param : run.params) slots.params.push_back(param.bits);
  }
  return all;
}

bool Replay::may_follow(const Recording& recording) const {
  const auto& forced = recording.plan().forced;
  return forced.size() >= told_.size() &&
         std::equal(told_.begin(), told_.end(), forced.begin(),
                    [](const ir::Scalar& told, const tracer::PlanForced& row) {
                      return told == row.outcome;
                    });
}

// Whether this recording begins with the runs that have been done, and the outputs that it needs of
// them have not been freed.
bool Replay::goes_on(const Recording& recording) const {
  if (followed_ == nullptr) return true;
  const auto &before = followed_->plan().runs, &runs = recording.plan().runs;
  if (runs.size() < runs_) return false;
  for (std::size_t r = 0; r < runs_; ++r) {
    if (!runs[r].does_as(before[r])) return false;
    for (std::size_t i = 0; i < runs[r].outputs.size(); ++i)
      if (runs[r].until[i] > runs_ && !outputs_[recording.first_output_[r] + i]) return false;
  }
  return true;
}

PyObject* Replay::owner(const tracer::PlanPlace& place, const Recording& recording) const {
  if (place.argument >= 0) return signature_.arguments[static_cast<std::size_t>(place.argument)];
  return outputs_[recording.first_output_[static_cast<std::size_t>(place.run)] +
                  static_cast<std::size_t>(place.output)]
      .ptr();
}

char* Replay::address(const tracer::PlanPlace& place, const Recording& recording) const {
  if (place.constant)
    return const_cast<char*>(static_cast<const char*>(place.constant)) + place.offset;
  return PyArray_BYTES(reinterpret_cast<PyArrayObject*>(owner(place, recording))) + place.offset;
}

py::object Replay::array_at(const tracer::PlanPlace& place, const Layout& layout,
                            const Recording& recording) const {
  return array_on(layout, address(place, recording), true, owner(place, recording));
}

// Some outputs need no copy. After the last run only a raised flag or a tie can make the call be
// traced: outputs that are not written directly have not been copied to their argument then, and a
// run that can raise no flag and find no tie is always right. In a call with one run, an operand
// that is written over needs none where the plan has the one operation that raises flags, whose
// warning is given without tracing; and memory that the run does not read needs none, for tracing
// writes it again, unless the warning may become an exception, before which NumPy would not have
// assigned.
void Replay::save(const Recording& recording, std::size_t at) {
  const tracer::Plan& plan = recording.plan();
  const tracer::PlanRun& run = plan.runs[at];
  const bool last =
      at + 1 == plan.runs.size() && (plan.forced.empty() || plan.forced.back().runs <= at);
  const bool only = plan.runs.size() == 1 && plan.forced.empty();
  for (const tracer::PlanOutput& output : run.outputs) {
    if (!output.target || output.target->argument < 0) continue;
    if (last && (!output.direct || (run.report_mask == 0 && !run.may_redo))) continue;
    if (only && (output.alias >= 0 ? recording.sole_.has_value() : !warnings_may_raise())) continue;
    const bool is_saved = std::ranges::any_of(saved_, [&](const Saved& saved) {
      return saved.place == *output.target && saved.layout == output.held;
    });
    if (is_saved) continue;
    Layout packed = output.held;
    packed.strides = numpy_shim::like_strides(packed, ir::size_of(packed.dtype));
    const py::object part = array_at(*output.target, output.held, recording);
    const py::object contents = new_array(packed, descr_of(packed.dtype));
    copy_into(contents, part);
    saved_.push_back({*output.target, output.held, part, contents});
  }
}

void Replay::take_back() {
  for (; !saved_.empty(); saved_.pop_back()) copy_into(saved_.back().part, saved_.back().contents);
  runs_ = 0;
  outputs_.clear();
  told_.clear();
}

ir::Scalar Replay::outcome(const tracer::PlanForced& forced, const Recording& recording) const {
  if (forced.place.argument >= 0) {
    PyObject* argument = signature_.arguments[static_cast<std::size_t>(forced.place.argument)];
    if (!PyArray_Check(argument)) {
      const ir::Scalar bits = scalar_bits(argument, forced.dtype);
      return tracer::outcome_of(forced, &bits);
    }
  }
  return tracer::outcome_of(forced, address(forced.place, recording));
}

bool Replay::run(Recording& recording, std::size_t at, Recording::Slots& slots,
                 const std::vector<py::object>& numbers) {
  const tracer::Plan& plan = recording.plan();
  const tracer::PlanRun& run = plan.runs[at];
  if (run.host_call) return call_host(recording, at);
  const std::size_t first = recording.first_output_[at];
  const std::vector<PyObject*>& arguments = signature_.arguments;
  for (std::size_t i = 0; i < run.inputs.size(); ++i)
    slots.inputs[i].data = address(run.inputs[i].place, recording);
  for (std::size_t i = 0; i < run.params.size(); ++i) {
    const tracer::PlanParam& param = run.params[i];
    if (param.argument >= 0) {
      slots.params[i] =
          scalar_bits(arguments[static_cast<std::size_t>(param.argument)], param.dtype);
    } else if (param.number >= 0) {
      const auto bits =
          number_bits(numbers[static_cast<std::size_t>(param.number)].ptr(), param.dtype);
      if (!bits) return false;
      slots.params[i] = *bits;
    }
  }
  outputs_.resize(first + run.outputs.size());
  for (std::size_t i = 0; i < run.outputs.size(); ++i) {
    const tracer::PlanOutput& output = run.outputs[i];
    if (output.direct) {
      slots.outputs[i].data = address(*output.target, recording);
      continue;
    }
    outputs_[first + i] = new_array(output.layout, recording.output_descrs_[first + i]);
    slots.outputs[i].data =
        PyArray_DATA(reinterpret_cast<PyArrayObject*>(outputs_[first + i].ptr()));
  }
  if (!run.executable) return true;
  save(recording, at);
  ir::RunArgs args{slots.inputs, slots.params, slots.outputs, slots.alias, slots.lasting};
  await_in_child(*run.executable);
  ir::RunStatus status;
  {
    const codegen::Timed timed(
        [&] { return codegen::slice_of_run(run.executable->report(), status); });
    if (recording.bytes() <= kKeepLockBytes && run.executable->expected_ns() <= kKeepLockNs) {
      status = run.executable->run(args);
    } else {
      WithoutGil released;
      SignalWatch watch(released, run.may_stop);
      args.watch = &watch;
      status = run.executable->run(args);
    }
  }
  // A signal's handler may have raised it, or an inner loop of some library.
  if (PyErr_Occurred()) throw py::error_already_set();
  const std::uint32_t raised = status.fp & run.report_mask;
  if (status.redo || (raised != 0 && !recording.sole_)) return false;
  // Where the warning may become an exception, Python has to raise it at the user's line; but not
  // after an operand has been overwritten, which NumPy does before it warns.
  const bool wrote = std::ranges::any_of(
      run.outputs, [](const tracer::PlanOutput& output) { return output.alias >= 0; });
  if (raised != 0 && !wrote && warnings_may_raise()) return false;
  for (std::size_t i = 0; i < run.outputs.size(); ++i)
    if (const tracer::PlanOutput& output = run.outputs[i]; output.target && !output.direct)
      copy_into(array_at(*output.target, output.held, recording), outputs_[first + i]);
  if (raised != 0)
    for (const std::string& message : numpy_shim::error_messages(plan.sole->ufunc, raised))
      warn(*recording.sole_, message);
  return true;
}

py::object Replay::value_of(const tracer::PlanValue& value, const Recording& recording) const {
  const tracer::PlanPlace& place = value.place;
  if (place.argument >= 0) {
    PyObject* argument = signature_.arguments[static_cast<std::size_t>(place.argument)];
    if (!PyArray_Check(argument)) {  // a NumPy scalar
      if (value.whole) return borrow(argument);
      const DType dtype = value.layout.dtype;
      return scalar_object(dtype, scalar_bits(argument, dtype).bits);
    }
  }
  char* data = address(place, recording);
  if (value.scalar) return scalar_object(value.layout.dtype, data);
  PyObject* source = owner(place, recording);
  if (value.whole) return borrow(source);
  const bool writeable = PyArray_ISWRITEABLE(reinterpret_cast<PyArrayObject*>(source));
  return array_on(value.layout, data, writeable && !value.read_only, source, value.warned);
}

bool Replay::call_host(const Recording& recording, std::size_t at) {
  const tracer::PlanRun& run = recording.plan().runs[at];
  std::vector<py::object> given;
  given.reserve(run.given.size());
  for (const tracer::PlanValue& value : run.given) given.push_back(value_of(value, recording));
  const auto made = static_cast<const RepeatedCall&>(*run.host_call).repeat(given);
  const auto has_layout = [](const py::object& array, const tracer::PlanOutput& output) {
    return layout_of(reinterpret_cast<PyArrayObject*>(array.ptr())) == output.layout;
  };
  if (!std::ranges::equal(made, run.outputs, has_layout)) return false;
  outputs_.resize(recording.first_output_[at]);
  outputs_.insert(outputs_.end(), made.begin(), made.end());
  return true;
}

Replay::End Replay::follow(Recording& recording, const std::vector<py::object>& numbers) {
  if (!goes_on(recording)) take_back();
  followed_ = &recording;
  const tracer::Plan& plan = recording.plan();
  std::unique_ptr<Recording::AllSlots> slots = recording.take_slots();
  for (;; ++runs_) {
    while (told_.size() < plan.forced.size() && plan.forced[told_.size()].runs == runs_) {
      const tracer::PlanForced& forced = plan.forced[told_.size()];
      told_.push_back(outcome(forced, recording));
      if (told_.back() == forced.outcome) continue;
      recording.idle_.push_back(std::move(slots));
      return End::Elsewhere;
    }
    if (runs_ == plan.runs.size()) break;
    for (const std::size_t output : recording.needless_[runs_]) outputs_[output] = {};
    if (!run(recording, runs_, (*slots)[runs_], numbers)) return End::Traced;
  }
  recording.idle_.push_back(std::move(slots));
  std::vector<py::object> results;
  results.reserve(plan.results.size());
  for (const tracer::PlanValue& result : plan.results)
    results.push_back(value_of(result, recording));
  result_ = build(recording.results_, results, signature_, numbers);
  if (recording.stores_.empty()) return End::Done;
  assign(recording.stores_, result_);
  result_ = borrow(PyTuple_GET_ITEM(result_.ptr(), 0));
  return End::Done;
}

// Values that were there before may die at this, and their destructors are the only code that could
// see some attributes assigned and others not.
void Replay::assign(const std::vector<ObjectWatch::Store>& stores, const py::object& values) const {
  Py_ssize_t at = 0;
  for (const ObjectWatch::Store& store : stores) {
    PyObject* object = signature_.owners[static_cast<std::size_t>(store.object)];
    if (PyObject_SetAttr(object, store.name.ptr(), PyTuple_GET_ITEM(values.ptr(), ++at)) < 0)
      throw py::error_already_set();
  }
}

}  // namespace ufuse::pyext
