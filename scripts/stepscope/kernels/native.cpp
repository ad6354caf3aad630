// Attention's calls, made again without Python: what `remember_*` was told of tensors of some shapes and strides,
// `attend` does for others like them. In Python a call takes the host four times as long as its launches.
//
// What is not plain goes back to Python, where every case is known: `attend` returns None, and a backward pass calls
// stepscope.kernels.kernels.gradients_once.

#include <torch/csrc/autograd/python_variable.h>

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_strided.h>
#include <ATen/SequenceNumber.h>
#include <ATen/record_function.h>
#include <c10/core/DeviceGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <torch/csrc/autograd/custom_function.h>

#include <array>
#include <cstring>
#include <initializer_list>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;
using Strides = std::vector<int64_t>;

constexpr int64_t ALIGNED = 16;           // bytes of addresses, as stepscope.kernels.operands has it
constexpr size_t MOST_PARAMETERS = 4096;  // bytes that a kernel takes
constexpr size_t MOST_KNOWN = 4096;       // shapes, of a few KiB each; a node of autograd's graph may need any of them

// Functions of the CUDA driver, found by Python: there need be no CUDA toolkit to build with.
struct Driver {
  int (*launch)(void* function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned shared,
                void* stream, void** parameters, void** extra) = nullptr;  // cuLaunchKernel
  int (*replace_address)(void* tensor_map, void* address) = nullptr;       // cuTensorMapReplaceAddress
  int (*is_capturing)(void* stream, int* status) = nullptr;                // cuStreamIsCapturing
  int (*current_context)(void** context) = nullptr;                        // cuCtxGetCurrent

  static void check(int status) {
    // One string: what the compiler's own streams write, a library's linked statically can spoil.
    TORCH_CHECK(status == 0, "fused attention: the CUDA driver's error " + std::to_string(status) + " in a launch");
  }

  // Whether this thread has used the GPU. Its first launch has to be Triton's, which sees to that.
  bool is_ready() const {
    void* context = nullptr;
    check(current_context(&context));
    return context;
  }

  bool captures(void* stream) const {
    int status = 0;
    check(is_capturing(stream, &status));
    return status;
  }
} driver;

// Where in a kernel's parameters an address stands: (offset, number of the tensor, bytes from its begin, whether it
// stands in a descriptor of a tensor).
using Place = std::tuple<size_t, size_t, int64_t, bool>;

struct Launch {
  void* function;
  std::array<unsigned, 3> grid, block;
  unsigned shared_bytes;
  std::string parameters;
  std::vector<Place> places;

  void run(const int64_t* addresses, void* stream) const {
    alignas(64) char filled[MOST_PARAMETERS];
    size_t size = parameters.size();
    std::memcpy(filled, parameters.data(), size);
    for (const auto& [offset, number, more, is_described] : places) {
      int64_t address = addresses[number] + more;
      if (!is_described) {
        std::memcpy(filled + offset, &address, sizeof(address));
      } else {
        Driver::check(driver.replace_address(filled + offset, reinterpret_cast<void*>(address)));
      }
    }
    // The driver's markers: 1, a buffer of all parameters follows; 2, its size; 0, the end.
    void* extra[] = {reinterpret_cast<void*>(1), filled, reinterpret_cast<void*>(2), &size, nullptr};
    Driver::check(driver.launch(function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared_bytes, stream,
                                nullptr, extra));
  }
};
using Given = std::tuple<uint64_t, std::array<unsigned, 3>, std::array<unsigned, 3>, unsigned, std::string,
                         std::vector<Place>>;
using Plan = std::vector<Launch>;

Plan plan_of(const std::vector<Given>& launches) {
  Plan plan;
  for (const auto& [function, grid, block, shared_bytes, parameters, places] : launches) {
    TORCH_CHECK(parameters.size() <= MOST_PARAMETERS, "more parameters than a kernel takes");
    plan.push_back({reinterpret_cast<void*>(function), grid, block, shared_bytes, parameters, places});
  }
  return plan;
}

void run(const Plan& plan, const int64_t* addresses, void* stream) {
  for (const auto& launch : plan) launch.run(addresses, stream);
}

int64_t address_of(const Tensor& x) { return reinterpret_cast<int64_t>(x.const_data_ptr()); }

c10::StreamId current_stream(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device).id();
}

struct Mask {
  bool is_causal;
  std::optional<int64_t> window;
  bool lower_right;
};

// All that a plan depends on; the stream, too, since kernels count in memory of its own.
struct Key {
  std::array<int64_t, 31> words{};

  Key(const Tensor& q, const Tensor& k, const Tensor& v, const Mask& mask) {
    auto word = words.begin();
    for (const auto* x : {&q, &k, &v}) {
      for (auto size : x->sizes()) *word++ = size;
      for (auto stride : x->strides()) *word++ = stride;
      *word++ = static_cast<int64_t>(x->scalar_type()) * 256 + x->device().index();
    }
    *word++ = mask.is_causal + 2 * mask.lower_right + 4 * mask.window.has_value();
    *word++ = q.scalar_type() == at::kFloat ? static_cast<int64_t>(at::globalContext().float32MatmulPrecision()) : 0;
    *word++ = mask.window.value_or(0);
    *word++ = current_stream(q.device());
  }
  bool operator==(const Key& other) const { return words == other.words; }
};

struct Hash {
  size_t operator()(const Key& key) const {
    uint64_t found = 0xcbf29ce484222325;  // Fowler-Noll-Vo, a word at a time
    for (auto word : key.words) found = (found ^ static_cast<uint64_t>(word)) * 0x100000001b3;
    return found ^ (found >> 32);
  }
};

struct Backward {
  Strides output, d_output;
  std::array<Strides, 3> gradients;
  Plan plan;
  int64_t scratch_bytes;
};

struct Known {
  Key key;
  Mask mask;
  Plan forward;
  Strides output;
  int64_t counter;
  void* stream;
  std::list<Backward> backward;
};

std::mutex guard;
std::unordered_map<Key, Known, Hash> all_known;

Known* find(const Key& key) {
  std::lock_guard lock(guard);
  auto found = all_known.find(key);
  return found == all_known.end() ? nullptr : &found->second;
}

const Backward* find(const Known& known, at::IntArrayRef output, at::IntArrayRef d_output) {
  std::lock_guard lock(guard);
  for (const auto& each : known.backward)
    if (output == each.output && d_output == each.d_output) return &each;
  return nullptr;
}

// Whether all these addresses are of memory, and as the kernels need them.
bool are_aligned(const int64_t* addresses, size_t number) {
  int64_t together = 0;
  for (size_t i = 0; i < number; ++i) {
    if (!addresses[i]) return false;
    together |= addresses[i];
  }
  return together % ALIGNED == 0;
}

// Whether all are tensors of a device's memory, with gradients or without, and nothing changes what operations mean.
bool are_plain(std::initializer_list<const Tensor*> tensors) {
  using c10::DispatchKey;
  constexpr c10::DispatchKeySet plain{
      DispatchKey::CPU,         DispatchKey::CUDA,         DispatchKey::AutogradCPU,     DispatchKey::AutogradCUDA,
      DispatchKey::AutocastCPU, DispatchKey::AutocastCUDA, DispatchKey::ADInplaceOrView, DispatchKey::BackendSelect};
  auto local = c10::impl::tls_local_dispatch_key_set();
  auto keys = local.included_;
  for (const auto* x : tensors) {
    if (!x->defined()) return false;
    keys = keys | x->key_set();
  }
  return !((keys - local.excluded_).raw_repr() & ~plain.raw_repr());
}

bool are_4d(const Tensor& q, const Tensor& k, const Tensor& v) { return q.dim() == 4 && k.dim() == 4 && v.dim() == 4; }

std::tuple<Tensor, Tensor> forward(const Known& known, const Tensor& q, const Tensor& k, const Tensor& v) {
  auto output = at::empty_strided(q.sizes(), known.output, q.options());
  auto lse = at::empty(q.sizes().slice(0, 3), q.options().dtype(at::kFloat));
  const int64_t addresses[] = {address_of(q),      address_of(k),   address_of(v),
                               address_of(output), address_of(lse), known.counter};
  run(known.forward, addresses, known.stream);
  return {output, lse};
}

variable_list gradients_by_python(const Known& known, const variable_list& saved, const Tensor& d_output) {
  py::gil_scoped_acquire acquire;
  auto in_python = py::module_::import("stepscope.kernels.kernels").attr("gradients_once");
  auto found = in_python(saved[0], saved[1], saved[2], saved[3], saved[4], d_output, known.mask.is_causal,
                         known.mask.window, known.mask.lower_right);
  return found.cast<variable_list>();
}

variable_list gradients(const Known& known, const variable_list& saved, const Tensor& d_output) {
  const auto& [q, k, v, output, lse] = std::tie(saved[0], saved[1], saved[2], saved[3], saved[4]);
  const Backward* found = nullptr;
  std::array<int64_t, 10> addresses{};
  c10::OptionalDeviceGuard device(d_output.device());
  // What was saved may come back as other tensors than it was.
  if (driver.is_ready() && !at::GradMode::is_enabled() && are_plain({&q, &k, &v, &output, &lse, &d_output}) &&
      are_4d(q, k, v) && Key(q, k, v, known.mask) == known.key && output.options().type_equal(q.options()) &&
      lse.is_contiguous()) {
    for (size_t i = 0; i < 6; ++i) addresses[i] = address_of(i < 5 ? saved[i] : d_output);
    if (are_aligned(addresses.data(), 6)) found = find(known, output.strides(), d_output.strides());
  }
  if (!found) return gradients_by_python(known, saved, d_output);
  variable_list results;
  for (size_t i = 0; i < 3; ++i) {
    results.push_back(at::empty_strided(saved[i].sizes(), found->gradients[i], saved[i].options()));
    addresses[6 + i] = address_of(results[i]);
  }
  Tensor scratch;
  if (found->scratch_bytes) {
    scratch = at::empty({found->scratch_bytes}, q.options().dtype(at::kByte));
    addresses[9] = address_of(scratch);
  }
  run(found->plan, addresses.data(), known.stream);
  return results;
}

}  // namespace

namespace stepscope {  // autograd's node shows its name

struct FlashAttention : public torch::autograd::Function<FlashAttention> {
  static Tensor forward(AutogradContext* ctx, const Tensor& q, const Tensor& k, const Tensor& v, int64_t known) {
    auto [output, lse] = ::forward(*reinterpret_cast<const Known*>(known), q, k, v);
    ctx->saved_data["known"] = known;
    ctx->save_for_backward({q, k, v, output, lse});
    return output;
  }

  static variable_list backward(AutogradContext* ctx, variable_list d_outputs) {
    auto known = ctx->saved_data["known"].toInt();
    auto results = gradients(*reinterpret_cast<const Known*>(known), ctx->get_saved_variables(), d_outputs[0]);
    results.emplace_back();  // what is known has no gradient
    return results;
  }
};

}  // namespace stepscope

namespace {

std::optional<Tensor> attend(const Tensor& q, const Tensor& k, const Tensor& v, bool is_causal,
                             std::optional<int64_t> window, bool lower_right) {
  if (!are_plain({&q, &k, &v}) || !are_4d(q, k, v)) return {};
  auto* known = find(Key(q, k, v, {is_causal, window, lower_right}));
  const int64_t addresses[] = {address_of(q), address_of(k), address_of(v)};
  if (!known || !are_aligned(addresses, 3)) return {};
  c10::OptionalDeviceGuard device(q.device());
  // What is captured in a graph may run beside others: it needs a counter of its own.
  if (!driver.is_ready() || driver.captures(known->stream)) return {};
  bool any = false;
  for (const auto* x : {&q, &k, &v}) {
    if (x->_fw_grad(0).defined()) return {};
    any |= x->requires_grad();
  }
  any &= at::GradMode::is_enabled();
  RECORD_FUNCTION("FlashAttention", (std::vector<c10::IValue>{q, k, v}), any ? at::sequence_number::peek() : -1);
  if (!any) return std::get<0>(forward(*known, q, k, v));
  return stepscope::FlashAttention::apply(q, k, v, reinterpret_cast<int64_t>(known));
}

void remember_forward(const Tensor& q, const Tensor& k, const Tensor& v, bool is_causal, std::optional<int64_t> window,
                      bool lower_right, const std::vector<Given>& launches, const Strides& output, int64_t counter,
                      int64_t stream) {
  Mask mask{is_causal, window, lower_right};
  Key key(q, k, v, mask);
  std::lock_guard lock(guard);
  if (all_known.size() < MOST_KNOWN) {
    all_known.try_emplace(
        key, Known{key, mask, plan_of(launches), output, counter, reinterpret_cast<void*>(stream), {}});
  }
}

void remember_backward(const Tensor& q, const Tensor& k, const Tensor& v, bool is_causal, std::optional<int64_t> window,
                       bool lower_right, const std::vector<Given>& launches, const Strides& output,
                       const Strides& d_output, const std::array<Strides, 3>& gradients, int64_t scratch_bytes) {
  auto* known = find(Key(q, k, v, {is_causal, window, lower_right}));
  if (!known || find(*known, output, d_output)) return;
  std::lock_guard lock(guard);
  known->backward.push_back({output, d_output, gradients, plan_of(launches), scratch_bytes});
}

bool has_room() {
  std::lock_guard lock(guard);
  return all_known.size() < MOST_KNOWN;
}

void use(uint64_t launch, uint64_t replace_address, uint64_t is_capturing, uint64_t current_context) {
  driver = {reinterpret_cast<decltype(driver.launch)>(launch),
            reinterpret_cast<decltype(driver.replace_address)>(replace_address),
            reinterpret_cast<decltype(driver.is_capturing)>(is_capturing),
            reinterpret_cast<decltype(driver.current_context)>(current_context)};
}

}  // namespace

PYBIND11_MODULE(TORCH_EXTENSION_NAME, module) {
  module.def("attend", torch::wrap_pybind_function_no_gil(attend));
  module.def("remember_forward", torch::wrap_pybind_function(remember_forward));
  module.def("remember_backward", torch::wrap_pybind_function(remember_backward));
  module.def("has_room", &has_room);
  module.def("use", &use);
}
