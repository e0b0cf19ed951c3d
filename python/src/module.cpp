// penstock._penstock: the library for Python. The package penstock, beside it, is what people
// import.
#include <cstdlib>

#include "bindings.hpp"
#include "python_object.hpp"

NB_MODULE(_penstock, module) {
  namespace nb = nanobind;
  using namespace penstock::python;

  module.doc() = "Penstock feeds training data to GPUs. Import penstock, not this module.";
  module.attr("__version__") = PENSTOCK_VERSION;
  // Objects that live when the interpreter ends are no mistake of the program's; in our tests they
  // are one of ours.
  nb::set_leak_warnings(std::getenv("PENSTOCK_LEAK_WARNINGS") != nullptr);
  watch_forks();
  translate_exceptions();
  bind_core(module);
  bind_crops(module);
  bind_transforms(module);
  bind_gpu_jpeg(module);
  bind_augmentations(module);
  bind_tensors(module);
  bind_report(module);
  bind_prepare(module);
  bind_loader(module);
  declare_dataset(module);
  bind_sources(module);
  bind_streams(module);
  bind_remote_queues(module);
  bind_dataset(module);
  bind_remote_rows(module);
  bind_sync(module);
}
