// What would numpy_shim answer? A filter for the Python tests beside it, which compare with the
// installed NumPy: one request per line, one answer per line, "unsupported <reason>" where NumPy is
// to be called. Only metadata; no array is ever made.
//
//   array operand   <dtype code>:<shape>:<strides>[:s]   lists as 3,4 or - ; s: a NumPy scalar
//   weak operand    i=-5  f=0x1.8p+0  c=1.0,2.0
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <sstream>

#include "numpy_shim/layout.h"
#include "numpy_shim/operators.h"
#include "numpy_shim/promote.h"
#include "numpy_shim/reduce.h"
#include "numpy_shim/ufunc.h"
#include "numpy_shim/value_promotion.h"
#include "numpy_shim/view.h"

namespace {

using namespace ufuse::numpy_shim;
namespace ir = ufuse::ir;

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream in(text);
  for (std::string part; std::getline(in, part, at);) parts.push_back(part);
  return parts;
}

Dims dims(const std::string& text) {
  Dims result;
  if (text != "-")
    for (const std::string& part : split(text, ',')) result.push_back(std::stoll(part));
  return result;
}
std::optional<Dims> maybe_dims(const std::string& text) {
  return text == "None" ? std::nullopt : std::optional(dims(text));
}
std::optional<std::int64_t> maybe_int(const std::string& text) {
  return text == "None" ? std::nullopt : std::optional<std::int64_t>(std::stoll(text));
}
DType dtype(const std::string& code) { return ir::dtype_from_code(code.at(0)).value(); }
std::optional<DType> maybe_dtype(const std::string& code) {
  return code == "None" ? std::nullopt : std::optional(dtype(code));
}

std::string text(const Dims& dims) {
  std::string result;
  for (std::int64_t d : dims) result += (result.empty() ? "" : ",") + std::to_string(d);
  return result.empty() ? "-" : result;
}
std::string text(const Layout& x) {
  return std::string(1, ir::info(x.dtype).code) + ":" + text(x.shape) + ":" + text(x.strides);
}

NumpyVersion installed;

struct TestContext : Context {
  TestContext() { version = installed; }
  ir::Graph nodes;
  ir::LoopTable table;
  std::uint32_t inputs = 0, params = 0;
  ir::Graph& graph() override { return nodes; }
  ir::LoopTable& loops() override { return table; }
  NodeId param(DType dtype, ir::Scalar, int) override { return ir::param(nodes, params++, dtype); }
};

WeakScalar weak(const std::string& word) {
  WeakScalar result;
  const std::string value = word.substr(2);
  if (word[0] == 'i') {
    result.negative = value[0] == '-';
    result.magnitude =
        result.negative ? static_cast<std::uint64_t>(std::stoll(value)) : std::stoull(value);
  } else {
    const std::vector<std::string> parts = split(value, ',');
    result.kind = word[0] == 'f' ? WeakScalar::Kind::Float : WeakScalar::Kind::Complex;
    result.value = {std::strtod(parts[0].c_str(), nullptr),
                    parts.size() > 1 ? std::strtod(parts[1].c_str(), nullptr) : 0.0};
  }
  return result;
}

Operand operand(TestContext& context, const std::string& word) {
  Operand result;
  if (word[1] == '=') {
    result.weak = weak(word);
    return result;
  }
  const std::vector<std::string> parts = split(word, ':');
  result.layout = {dtype(parts[0]), dims(parts[1]), dims(parts[2])};
  result.scalar = parts.size() > 3;
  result.node =
      ir::input(context.nodes, context.inputs++, result.layout.dtype, result.layout.shape);
  return result;
}
std::optional<Operand> maybe_operand(TestContext& context, const std::string& word) {
  return word == "None" ? std::nullopt : std::optional(operand(context, word));
}

// A result and the graph behind it, checked by the verifier.
std::string text(TestContext& context, const Result& result) {
  ir::verify(context.nodes, &context.table);
  const ir::Node& node = context.nodes[result.node];
  const bool same = node.dtype == result.layout.dtype && node.shape == result.layout.shape;
  if (!same) throw ufuse::InternalError("node and layout differ");
  return text(result.layout) + (result.scalar ? ":s" : "");
}

std::string text(const View& view) {
  std::string result = text(view.layout) + " " + std::to_string(view.offset);
  for (const ViewStep& step : view.steps)
    result += " " + std::string(ir::op_info(step.op).name) + ":" + text(step.shape) + ":" +
              text(step.ints);
  return result;
}

IndexItem index_item(const std::string& word) {
  IndexItem item;
  if (word == "newaxis") {
    item.kind = IndexItem::Kind::NewAxis;
  } else if (word == "...") {
    item.kind = IndexItem::Kind::Ellipsis;
  } else if (word.find(':') != std::string::npos) {
    const std::vector<std::string> parts = split(word, ':');
    item.kind = IndexItem::Kind::Slice;
    item.start = maybe_int(parts[0]);
    item.stop = maybe_int(parts[1]);
    item.step = maybe_int(parts[2]);
  } else {
    item.integer = std::stoll(word);
  }
  return item;
}

using Words = std::vector<std::string>;
std::map<std::string, Ufunc> ufuncs;

std::vector<Operand> operands(TestContext& context, const Words& words, std::size_t from) {
  std::vector<Operand> result;
  for (std::size_t i = from; i < words.size(); ++i) result.push_back(operand(context, words[i]));
  return result;
}

// ufunc <name> <of_numpy> <nin> <nout> <elementwise> <types,...>
std::string register_ufunc(const Words& w) {
  Ufunc ufunc;
  ufunc.name = w[1];
  ufunc.of_numpy = w[2] == "1";
  ufunc.nin = std::stoi(w[3]);
  ufunc.nout = std::stoi(w[4]);
  ufunc.elementwise = w[5] == "1";
  if (w.size() > 6)
    for (const std::string& types : split(w[6], ','))
      ufunc.loops.push_back({types, nullptr, nullptr});
  ufuncs[ufunc.name] = ufunc;
  return "ok";
}

// call <name> <dtype> <same_kind|unsafe> <operands...>: the op that computes the first result, and
// the results
std::string call_ufunc(const Words& w) {
  TestContext context;
  const UfuncOptions options{maybe_dtype(w[2]), w[3] == "same_kind"};
  const std::vector<Result> results =
      call(context, ufuncs.at(w[1]), operands(context, w, 4), options);
  std::string answer(ir::op_info(context.nodes[results[0].node].op).name);
  for (const Result& result : results) answer += " " + text(context, result);
  return answer;
}

// operator <name> <left is temporary> <right is temporary> <operands>: the result
std::string call_operator(const Words& w) {
  TestContext context;
  const std::vector<Operand> both = operands(context, w, 4);
  UfuncOptions options;
  options.overwritten = elided_operand(w[1], both, {w[2] == "1", w[3] == "1"});
  return text(context, call(context, ufuncs.at(w[1]), both, options)[0]);
}

// power <dtype> <int|float> <value> <is Python's own>: what `**` calls for an array
std::string call_power(const Words& w) {
  const Exponent exponent{std::stod(w[3]), w[2] == "float", w[4] == "1"};
  const char* shortcut = power_shortcut(installed, dtype(w[1]), exponent);
  if (shortcut && shortcut == kPowerByNumpy) return "numpy";
  return shortcut ? shortcut : "power";
}

// scalar_operator <ufunc> <operands>
std::string call_scalar_operator(const Words& w) {
  TestContext context;
  check_scalar_operator(w[1], operands(context, w, 2));
  return "ok";
}

// promotes_alike <operands> | <values>: 1, 0 or None; a value is a weak operand or None
std::string promotion(const Words& w) {
  TestContext context;
  const auto bar = std::find(w.begin(), w.end(), "|");
  const std::vector<Operand> given = operands(context, Words(w.begin(), bar), 1);
  std::vector<std::optional<ir::Scalar>> values;
  for (auto word = bar + 1; word != w.end(); ++word) {
    const Operand& x = given.at(values.size());
    values.push_back(std::nullopt);
    if (*word == "None") continue;
    values.back() = convert(weak(*word), x.weak ? default_dtype(*x.weak) : x.layout.dtype);
  }
  const std::optional<bool> alike = promotes_alike(given, values);
  return alike ? std::to_string(*alike) : "None";
}

// reduce <name> <keepdims> <axes> <dtype> <initial> <where> <operand>
std::string call_reduce(const Words& w) {
  TestContext context;
  const Operand x = operand(context, w[7]);
  ReduceOptions options;
  options.axes = maybe_dims(w[3]);
  options.keepdims = w[2] == "1";
  options.dtype = maybe_dtype(w[4]);
  options.initial = maybe_operand(context, w[5]);
  options.where = maybe_operand(context, w[6]);
  const Result result = reduce(context, w[1], x, options);
  const ir::Node* node = &context.nodes[result.node];
  while (node->op != ir::Op::Reduce) node = &context.nodes[node->inputs[0]];
  constexpr std::array kOrders = {"free", "sequential", "pairwise", "extremum"};
  return text(context, result) + " " + std::string(ir::reduction_info(node->reduction).name) + " " +
         kOrders.at(static_cast<std::size_t>(node->order)) + " " + text(node->ints) + " " +
         std::to_string(node->run_axes) + " " + std::to_string(node->chunk);
}

// view <name> <operand> <arguments...>
std::string call_view(const Words& w) {
  TestContext context;
  const Layout x = operand(context, w[2]).layout;
  const auto arg = [&](std::size_t i) { return w.at(i + 3); };
  View view;
  if (w[1] == "index") {
    std::vector<IndexItem> items;
    for (std::size_t i = 3; i < w.size(); ++i) items.push_back(index_item(w[i]));
    view = basic_index(x, items);
  } else if (w[1] == "transpose") {
    view = transpose(x, maybe_dims(arg(0)));
  } else if (w[1] == "swapaxes") {
    view = swapaxes(x, std::stoll(arg(0)), std::stoll(arg(1)));
  } else if (w[1] == "squeeze") {
    view = squeeze(x, maybe_dims(arg(0)));
  } else if (w[1] == "expand_dims") {
    view = expand_dims(x, dims(arg(0)));
  } else if (w[1] == "broadcast_to") {
    view = broadcast_to(x, dims(arg(0)));
  } else if (w[1] == "reshape") {
    const std::optional<View> reshaped = reshape_view(x, dims(arg(0)), arg(1) == "F");
    if (!reshaped) return "copy";
    view = *reshaped;
  } else {
    throw ufuse::InternalError("unknown view " + w[1]);
  }
  ir::Graph& g = context.nodes;
  if (g[apply(g, g.at(0), view.steps)].shape != view.layout.shape)
    throw ufuse::InternalError("steps and layout differ");
  ir::verify(g, nullptr);
  return text(view);
}

std::string hex(const ir::Scalar& s) {
  std::ostringstream out;
  out << std::hex << s.bits[0];
  for (int i = 1; i < 4; ++i) out << " " << s.bits[i];
  return out.str();
}

const std::map<std::string, std::function<std::string(const Words&)>> kRequests = {
    {"numpy",  // numpy <version>: all that follows is asked of this one
     [](const Words& w) {
       installed = NumpyVersion::of(w[1]);
       return std::string("ok");
     }},
    {"promote",
     [](const Words& w) {
       return std::string(1, ir::info(promote(dtype(w[1]), dtype(w[2]))).code);
     }},
    {"can_cast",
     [](const Words& w) {
       return std::to_string(can_cast_safely(dtype(w[1]), dtype(w[2]))) +
              std::to_string(can_cast_same_kind(dtype(w[1]), dtype(w[2])));
     }},
    {"result_type",
     [](const Words& w) {
       TestContext context;
       return std::string(1, ir::info(result_type(operands(context, w, 1))).code);
     }},
    {"convert", [](const Words& w) { return hex(convert(weak(w[1]), dtype(w[2]))); }},
    {"like",
     [](const Words& w) {
       TestContext context;
       const Layout x = operand(context, w[1]).layout;
       return text(like_strides(x, ir::size_of(x.dtype)));
     }},
    {"contiguous",
     [](const Words& w) {
       TestContext context;
       const Layout x = operand(context, w[1]).layout;
       return std::to_string(is_c_contiguous(x)) + std::to_string(is_f_contiguous(x));
     }},
    {"ufunc", register_ufunc},
    {"call", call_ufunc},
    {"operator", call_operator},
    {"power", call_power},
    {"scalar_operator", call_scalar_operator},
    {"promotes_alike", promotion},
    {"reduce", call_reduce},
    {"arg_reduce",
     [](const Words& w) {  // arg_reduce <largest> <axis> <keepdims> <operand>
       TestContext context;
       const Operand x = operand(context, w[4]);
       return text(context, arg_reduce(context, w[1] == "1", x, maybe_int(w[2]), w[3] == "1"));
     }},
    {"view", call_view},
};

}  // namespace

int main() {
  for (std::string line; std::getline(std::cin, line);) {
    const Words words = split(line, ' ');
    try {
      std::cout << kRequests.at(words.at(0))(words) << "\n";
    } catch (const ufuse::Unsupported& e) {
      std::cout << "unsupported " << e.what() << "\n";  // reason: detail
    } catch (const std::exception& e) {
      std::cout << "error " << e.what() << " in: " << line << "\n";
    }
  }
}
