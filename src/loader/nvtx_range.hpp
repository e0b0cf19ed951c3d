// loader/nvtx_range: a range that Nsight Systems shows on the thread's line, in the domain
// penstock. Without such a tool it costs a test of a pointer; in a build without CUDA, nothing.
#pragma once

#include <penstock/loader/loader.hpp>

#ifdef PENSTOCK_HAVE_CUDA
#include <nvtx3/nvToolsExt.h>
#endif

namespace penstock::loader {

#ifdef PENSTOCK_HAVE_CUDA
class NvtxRange {
 public:
  explicit NvtxRange(Stage stage) noexcept {
    nvtxEventAttributes_t attributes{};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
    attributes.message.ascii = name_of(stage).data();  // of a literal
    nvtxDomainRangePushEx(domain(), &attributes);
  }
  ~NvtxRange() { nvtxDomainRangePop(domain()); }
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;

 private:
  static nvtxDomainHandle_t domain() noexcept {
    static const nvtxDomainHandle_t kDomain = nvtxDomainCreateA("penstock");
    return kDomain;
  }
};
#else
struct NvtxRange {
  explicit NvtxRange(Stage) noexcept {}
};
#endif

}  // namespace penstock::loader
