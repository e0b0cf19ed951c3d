// JPEGs decoded on a GPU, for loaders of one's own.
#include <deque>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "caller_tensor.hpp"
#include "header_docs.hpp"
#include "readable_bytes.hpp"

namespace penstock::python {

namespace {

using namespace nb::literals;
using gpu_jpeg::BatchDecoder;
using gpu_jpeg::BatchImage;
using gpu_jpeg::BatchReport;
using Box = std::tuple<double, double, double, double>;

// The GIL does not keep calls apart: decoding lets go of it.
struct PyBatchDecoder {
  BatchDecoder decoder;
  std::mutex mutex;
};

template <class T>
void require_one_each(const std::optional<std::vector<T>>& given, const char* name,
                      std::size_t images) {
  if (given && given->size() != images)
    throw std::invalid_argument("decode: expected " + std::to_string(images) + " " + name +
                                ", one an image, found " + std::to_string(given->size()));
}

std::string text_of_extents(const std::vector<std::int64_t>& extents) {
  std::string text;
  for (const std::int64_t extent : extents)
    text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

PyBatchDecoder make_decoder(gpu_jpeg::BatchDecoderOptions options) {
  if (!options.index) options.index = gpu_jpeg::BatchDecoderOptions{}.index;  // None was passed
  return {BatchDecoder(std::move(options)), {}};
}

BatchReport decode(PyBatchDecoder& self, const nb::sequence& images, nb::handle out,
                   const std::optional<std::vector<std::optional<Box>>>& boxes,
                   const std::optional<std::vector<bool>>& mirror,
                   const std::optional<std::uintptr_t>& stream) {
  std::deque<ReadableBytes> kept;
  for (const nb::handle image : images)
    kept.emplace_back(image, "images[" + std::to_string(kept.size()) + "]");
  require_one_each(boxes, "boxes", kept.size());
  require_one_each(mirror, "values of mirror", kept.size());
  std::vector<BatchImage> all;
  for (std::size_t i = 0; i < kept.size(); ++i) {
    all.push_back({.bytes = kept[i].bytes(), .mirror = mirror && (*mirror)[i]});
    if (!boxes || !(*boxes)[i]) continue;
    const auto& [x, y, width, height] = *(*boxes)[i];
    all.back().box = Region{.x = x, .y = y, .width = width, .height = height};
  }
  const Device& device = self.decoder.options().device;
  const ImageSize size = self.decoder.options().size;
  const CallerTensor pixels(out, "decode(out)");
  const std::vector<std::int64_t> expected{static_cast<std::int64_t>(all.size()), size.height,
                                           size.width, 3};
  if (!(pixels.device() == device))
    throw std::invalid_argument("decode: out is on " + pixels.device().to_string() +
                                ", and the decoder on " + device.to_string());
  if (pixels.view().dtype() != DType::u8 || pixels.extents() != expected)
    throw std::invalid_argument("decode: out has to be uint8 " + text_of_extents(expected) +
                                ", found " + std::string(numpy_name_of(pixels.view().dtype())) +
                                " " + text_of_extents(pixels.extents()));
  const StreamHandle ordered = pixels.stream(stream);
  return without_gil([&] {
    const std::lock_guard lock(self.mutex);
    return self.decoder.decode(all, pixels.view().raw(), ordered);
  });
}

}  // namespace

void bind_gpu_jpeg(nb::module_& module) {
  nb::class_<BatchReport> report(module, "JpegBatchReport", StructDoc<BatchReport>::kText);
  def_members(report, "on_gpu", &BatchReport::on_gpu, "on_host", &BatchReport::on_host);
  report
      .def_prop_ro(
          "faults", [](const BatchReport& self) { return self.faults; },
          as_sentence(sentence_of<BatchReport>("faults")).c_str())
      .def("__repr__", [](const BatchReport& self) {
        std::size_t faults = 0;
        for (const auto& fault : self.faults) faults += fault ? 1 : 0;
        return "JpegBatchReport(on_gpu=" + std::to_string(self.on_gpu) +
               ", on_host=" + std::to_string(self.on_host) + ", faults=" + std::to_string(faults) +
               ")";
      });

  nb::class_<PyBatchDecoder> decoder(
      module, "JpegBatchDecoder",
      R"(Decodes JPEGs on a GPU, for loaders of your own; Penstock's has loader(decode_on_gpu=True).

The CPU finds the parts of a scan that the crop needs, and copies them; the GPU does the rest: Huffman codes, the
inverse DCT, colours, the resize. The pixels are, bit for bit, those that the CPU makes, so it does not matter which of
them decodes an image.

    decoder = penstock.JpegBatchDecoder((224, 224), index=index)
    pixels = torch.empty(len(files), 224, 224, 3, dtype=torch.uint8, device="cuda")
    report = decoder.decode([file.read_bytes() for file in files], pixels)

Threads  any number; calls wait for each other. Without the GIL; images that the CPU decodes go over all cores.)");
  def_constructor(decoder,
                  Call{"JpegBatchDecoder", &make_decoder, docs::batch_decoder_init,
                       Parameter<gpu_jpeg::BatchDecoderOptions>{"options"}},
                  {"size"});
  decoder
      .def(
          "decode", &decode, "images"_a, "out"_a, nb::kw_only(), "boxes"_a.none() = nb::none(),
          "mirror"_a.none() = nb::none(), "stream"_a.none() = nb::none(),
          nb::sig("def decode(self, images: collections.abc.Sequence[typing.Any], out: "
                  "typing.Any, *, "
                  "boxes: collections.abc.Sequence[tuple[float, float, float, float] | None] | "
                  "None = None, "
                  "mirror: collections.abc.Sequence[bool] | None = None, stream: int | None = "
                  "None) -> JpegBatchReport"),
          R"(Queues the decoding of a batch into `out`. The images' bytes are not needed afterwards.

`images`: bytes, or what else has a buffer, such as a memoryview or an array. `boxes`: (x, y, width, height) of each image
as it is stored, in its pixels; None: all of it. `mirror`: left to right. An image with a fault gives zeros.

Shapes  out uint8 [images, height, width, 3], contiguous, on the decoder's device
Stream  `stream`, a number as in DLPack; else torch's current one. The batch is in `out` once what was queued there has run.
        The CPU waits for nothing but the memory of the batch before the last one (of the last one, where the CPU
        decoded images of both)
Errors  ValueError  a box that is not within its image; another `out`; nothing may be expected of it then
        TypeError   an image without a buffer
        Error       in an earlier batch, what the index says of an image was wrong
        CudaError)")
      .def(
          "wait",
          [](PyBatchDecoder& self) {
            without_gil([&] {
              const std::lock_guard lock(self.mutex);
              self.decoder.wait();
              return 0;
            });
          },
          docs::batch_decoder_wait);
}

}  // namespace penstock::python
