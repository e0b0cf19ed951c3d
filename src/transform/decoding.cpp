#include "src/transform/decoding.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "src/augment/variates.hpp"
#include "src/core/image_kind.hpp"
#include "src/core/partner_names.hpp"
#include "src/jpeg/image.hpp"
#include "src/jpeg/pixels/rows.hpp"
#include "src/transform/color.hpp"
#include "src/transform/crops.hpp"
#include "src/transform/find_field.hpp"
#include "src/transform/formats/image_reader.hpp"
#include "src/transform/formats/png.hpp"
#include "src/transform/image_packer.hpp"
#include "src/transform/joined_rows.hpp"
#include "src/transform/paste.hpp"
#include "src/transform/view.hpp"
#include "src/transform/wide_resize.hpp"

namespace penstock::transform {

namespace {

constexpr unsigned kStreamsOfAView = 256;
// Sequences of random numbers of what is made of several images, which is the only view.
constexpr std::uint16_t kSecond = 1;  // a second mosaic, or the image that is pasted
constexpr std::uint16_t kMixing = 2;
constexpr double kMixupAlpha = 32;  // Ultralytics'

// What a thread keeps between images.
struct Scratch {
  jpeg::Image jpeg;
  std::vector<View> views;            // one for each crop
  std::vector<std::uint8_t> pixels;   // an image decoded as a whole
  std::vector<std::uint16_t> levels;  // the same, of 16 bits
  WideResize wide;
  JoinedRows joined;
  std::vector<std::uint8_t> other;   // what was made first, where two are made
  std::vector<std::uint8_t> pasted;  // which pixels are of the second

  static Scratch& of_this_thread() {
    static thread_local Scratch scratch;
    return scratch;
  }
};

Fault fault(std::string_view reason) { return Fault{.reason = std::string(reason)}; }

Fault with_hint(Fault fault, const jpeg::Image& image) {
  if (image.failed_by_a_warning()) fault.reason += " (tolerant = true takes it, as Pillow does)";
  return fault;
}

// Turns the levels of an image as it is stored into those of the upright one.
void turn_upright(std::vector<std::uint16_t>& levels, const StoredImage& image, int channels) {
  if (image.exif == 1) return;
  const jpeg::Orientation turn(image.exif);
  const auto row = static_cast<std::size_t>(image.upright().width);
  const auto pixel = static_cast<std::size_t>(channels);
  std::vector<std::uint16_t> upright(levels.size());
  auto from = levels.cbegin();
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x, from += channels) {
      auto to_x = static_cast<std::size_t>(turn.mirror_x ? image.width - 1 - x : x);
      auto to_y = static_cast<std::size_t>(turn.mirror_y ? image.height - 1 - y : y);
      if (turn.transposed) std::swap(to_x, to_y);
      std::copy_n(from, channels,
                  upright.begin() + static_cast<std::ptrdiff_t>(pixel * (row * to_y + to_x)));
    }
  levels = std::move(upright);
}

// `levels` become those of `other` times a weight and their own times the rest, rounded.
void mix_into(std::span<std::uint8_t> levels, std::span<const std::uint8_t> other, double weight) {
  constexpr int kBits = 16;
  const auto of_other = static_cast<std::uint32_t>(std::lround(std::ldexp(weight, kBits)));
  const std::uint32_t own = (1U << kBits) - of_other;
  for (std::size_t i = 0; i < levels.size(); ++i)
    levels[i] = static_cast<std::uint8_t>(
        (other[i] * of_other + levels[i] * own + (1U << (kBits - 1))) >> kBits);
}

// The packer that an image is offered to.
struct Offer {
  ImagePacker& packer;
  bool packed = false;
};

// Which of the images that a sample is made of.
struct ImageNumber {
  int number = 0;
  int images = 1;
};

class Decoding final : public PackingTransform {
 public:
  Decoding(DecodeViewsOptions options, Description description, MovedFields moved)
      : options_(std::move(options)),
        description_(std::move(description)),
        moved_(std::move(moved)) {
    std::size_t output = 0;
    for (std::size_t k = 0; k < options_.views.size(); ++k) {
      const ImageView& view = options_.views[k];
      const int crops = std::max(crops_of(view), 1);
      for (int i = 0; i < crops; ++i)
        crops_.push_back(
            {.view = k,
             .copy = static_cast<std::size_t>(i),
             .stream = static_cast<std::uint16_t>(kStreamsOfAView * k + static_cast<unsigned>(i)),
             .output = output});
      output += view.geometry.empty() ? 1 : 2;
    }
    first_moved_ = output;
  }

  [[nodiscard]] bool is_random() const noexcept override {
    return std::ranges::any_of(options_.views,
                               [](const ImageView& view) { return transform::is_random(view); });
  }
  [[nodiscard]] std::optional<ImageMove> image_move() const override {
    const ImageView& view = options_.views.front();
    return moved_.image_move(options_.field, view.field, view.flip > 0);
  }
  [[nodiscard]] std::shared_ptr<JpegIndexStore> jpeg_index() const override {
    return options_.index;
  }
  [[nodiscard]] Binding bind(std::span<const FieldSpec> fields) const override {
    const std::size_t input =
        find_field(fields, options_.field, description_.name, transform::is_encoded);
    const FieldSpec& field = fields[input];
    if (!transform::is_encoded(field))
      throw std::invalid_argument(
          fmt::format("{} needs the bytes of an encoded image, u8 [?], and found {}{}",
                      description_.name, field.to_string(), remedy_for(fields, input)));
    Binding binding{.inputs = {input}, .outputs = {}};
    for (const ImageView& view : options_.views)
      add_outputs(view, options_.dtype, options_.channels, binding.outputs);
    moved_.bind(fields, options_.views.front().crop.size(), binding);
    if (is_of_several()) bind_partners(fields, binding);
    return binding;
  }

  Result<void> apply(std::span<const ConstTensorView> in, Outputs out,
                     Random& random) const override {
    return apply(in, out, random, nullptr);
  }

  Result<void> apply_or_pack(std::span<const ConstTensorView> in, Outputs out, Random& random,
                             ImagePacker& packer, bool& packed) const override {
    Offer offer{packer};
    auto result = apply(in, out, random, &offer);
    packed = offer.packed;
    return result;
  }

  [[nodiscard]] std::string why_not_packed() const override {
    if (!options_.index) return fmt::format("{} has no index", description_.name);
    if (options_.decoder == JpegDecoder::libjpeg) return "libjpeg-turbo decodes it";
    if (options_.scaled) return "it is decoded at a part of its size (scaled)";
    if (options_.dtype != DType::u8 || options_.channels != 3)
      return fmt::format("it has {} and {} channels, not u8 and 3", name_of(options_.dtype),
                         options_.channels);
    if (is_of_several()) return "it is made of several images";
    if (crops_.size() != 1) return fmt::format("it has {} crops of an image", crops_.size());
    const ResizeFilter filter = options_.views.front().filter;
    if (filter != ResizeFilter::bilinear && filter != ResizeFilter::bicubic)
      return "its filter is none of bilinear and bicubic";
    return {};
  }

  static std::string remedy_for(std::span<const FieldSpec> fields, std::size_t input) {
    const FieldSpec& field = fields[input];
    if (transform::is_decoded(field))
      return fmt::format(
          ": it is decoded already; {} takes such images",
          transform::call_with_field("crop_image", field.name, "crop=resize_to(224)"));
    if (field.dtype == DType::u8 && field.shape.rank() == 1)
      return ": it has one length, as pad gives it; decode it in place of that";
    const std::string another = name_another(fields, input, transform::is_encoded);
    return another.empty() ? ": no field of the samples is one" : another;
  }

  Result<void> apply(std::span<const ConstTensorView> in, Outputs out, Random& random,
                     Offer* offer) const {
    Scratch& scratch = Scratch::of_this_thread();
    try {
      if (is_of_several()) return join(in, scratch, out, random);
      if (auto decoded = decode(in, scratch, out, random, offer, {}); !decoded) return decoded;
      if (moved_.empty()) return {};
      return moved_.crop(in.subspan(1), out, first_moved_, scratch.views.front().window());
    } catch (const std::bad_alloc&) {
      return Fault::of(std::current_exception());
    }
  }

  [[nodiscard]] Description description() const override { return description_; }

 private:
  // Where a crop comes from, and where it goes.
  struct CropPlace {
    std::size_t view;      // of the options
    std::size_t copy;      // in the view's field
    std::uint16_t stream;  // of random numbers
    std::size_t output;    // the view's field; its geometry is behind it
  };

  [[nodiscard]] bool is_of_several() const noexcept {
    return images_of(options_.views.front().crop) != 1;
  }

  // The fields of the partners that are what the sample's own are, and the partners' numbers, which stay.
  void bind_partners(std::span<const FieldSpec> fields, Binding& binding) const {
    const Crop& crop = options_.views.front().crop;
    const auto refuse = [&](const std::string& what) {
      throw std::invalid_argument(
          fmt::format("{}: {} {}", description_.name, crop.to_string(), what));
    };
    const auto partners = static_cast<std::size_t>(images_of(crop) - 1);
    const auto numbers = std::ranges::find(fields, core::kPartners, &FieldSpec::name);
    if (numbers == fields.end())
      refuse(fmt::format("is made of a sample and {0} more: put partners({0}) behind the source",
                         partners));
    if (numbers->dtype != DType::i64 ||
        numbers->shape != Shape({static_cast<std::int64_t>(partners)}))
      refuse(
          fmt::format("is made of a sample and {0} more, and '{1}' says that there are not as "
                      "many: put partners({0}) behind the source",
                      partners, numbers->to_string()));
    const std::vector<std::size_t> own = binding.inputs;
    for (std::size_t k = 1; k <= partners; ++k)
      for (const std::size_t input : own) {
        const std::string name = core::partner_name(fields[input].name, k);
        const std::size_t partner = find_field(fields, name, description_.name);
        if (fields[partner].dtype != fields[input].dtype ||
            fields[partner].shape != fields[input].shape)
          refuse(fmt::format("takes {} as it takes {}: put it before what makes them different",
                             fields[partner].to_string(), fields[input].to_string()));
        binding.inputs.push_back(partner);
      }
    binding.inputs.push_back(static_cast<std::size_t>(numbers - fields.begin()));
    binding.outputs.push_back(*numbers);
  }

  // The inputs of what is made of several images: the fields of each, one image after another.
  struct Images {
    std::span<const ConstTensorView> in;
    std::size_t fields;
    const std::int64_t* numbers;  // of the partners

    [[nodiscard]] std::span<const ConstTensorView> fields_of(std::size_t image) const {
      return in.subspan(fields * image, fields);
    }
    [[nodiscard]] bool is_alone() const noexcept { return numbers[0] < 0; }
  };

  // Gives back what is large, however a sample of several images ends.
  struct Joining {
    Scratch& scratch;
    ~Joining() {
      scratch.joined.trim();
      jpeg::trim(scratch.other);
      jpeg::trim(scratch.pasted);
    }
  };

  // Makes a sample of several images.
  Result<void> join(std::span<const ConstTensorView> in, Scratch& scratch, Outputs out,
                    Random& random) const {
    const Crop& crop = options_.views.front().crop;
    const ConstTensorView& partners = in.back();
    const Images images{.in = in,
                        .fields = (in.size() - 1) / static_cast<std::size_t>(images_of(crop)),
                        .numbers = partners.data<std::int64_t>()};
    if (!moved_.empty())
      scratch.joined.begin(first_moved_, moved_.instances().output_rows(
                                             images.fields_of(0).subspan(1), crop.size()));
    const Joining joining{scratch};
    const MosaicOptions* const mosaic = mosaic_of(crop);
    auto made = mosaic != nullptr ? join_mosaics(images, mosaic->mixup, scratch, out, random)
                                  : paste(images, copy_paste_of(crop)->share, scratch, out, random);
    if (!made) return made;
    if (!moved_.empty()) scratch.joined.finish(out);
    std::ranges::copy(partners.bytes(), out[out.size() - 1].bytes().begin());
    return {};
  }

  Result<void> join_mosaics(const Images& images, double mixup, Scratch& scratch, Outputs out,
                            const Random& random) const {
    if (auto made =
            join_some(images, 0, images.is_alone() ? 1 : Mosaic::kImages, scratch, out, random);
        !made)
      return made;
    Random mixing = random.of_stream(kMixing);
    if (!(mixing.uniform() < mixup) || images.is_alone()) return {};
    const std::span<std::uint8_t> levels = levels_of(out);
    scratch.other.assign(levels.begin(), levels.end());
    if (auto made = join_some(images, Mosaic::kImages, Mosaic::kImages, scratch, out,
                              random.of_stream(kSecond));
        !made)
      return made;
    mix_into(levels, scratch.other, augment::beta_variate(kMixupAlpha, mixing));
    return {};
  }

  // Makes one mosaic, of `count` images from number `first` on.
  Result<void> join_some(const Images& images, int first, int count, Scratch& scratch, Outputs out,
                         const Random& random) const {
    fill_sample(options_.views.front().crop, options_.channels, out[0].data<std::uint8_t>());
    for (int k = 0; k < count; ++k)  // each image draws the same numbers
      if (auto made = decode_one(images, first + k, {k, count}, scratch, out, random); !made)
        return made;
    return {};
  }

  // Decodes a sample and its partner, and pastes instances of that one onto it.
  Result<void> paste(const Images& images, double share, Scratch& scratch, Outputs out,
                     const Random& random) const {
    if (auto made = decode_one(images, 0, {}, scratch, out, random); !made || images.is_alone())
      return made;
    const std::span<std::uint8_t> levels = levels_of(out);
    scratch.other.assign(levels.begin(), levels.end());
    const std::size_t own = scratch.joined.count();
    if (auto made = decode_one(images, 1, {}, scratch, out, random.of_stream(kSecond)); !made)
      return made;
    Random choosing = random.of_stream(kMixing);
    paste_instances(scratch.joined, own, share, moved_.instances().options(),
                    options_.views.front().crop.size(), choosing, scratch.pasted);
    const auto channels = static_cast<std::size_t>(options_.channels);
    for (std::size_t i = 0; i < levels.size(); ++i)
      if (scratch.pasted[i / channels] == 0) levels[i] = scratch.other[i];
    return {};
  }

  [[nodiscard]] static std::span<std::uint8_t> levels_of(Outputs out) {
    return {out[0].data<std::uint8_t>(), out[0].bytes().size()};
  }

  // Decodes an image into its place, and adds what is seen of its instances.
  Result<void> decode_one(const Images& images, int which, ImageNumber of, Scratch& scratch,
                          Outputs out, Random random) const {
    const auto number = static_cast<std::size_t>(which);
    const auto one = images.fields_of(number);
    Result<void> result = decode(one, scratch, out, random, nullptr, of);
    if (result && !moved_.empty() && !scratch.views.front().is_empty())
      result = moved_.crop(one.subspan(1), scratch.joined.outputs(), first_moved_,
                           scratch.views.front().window());
    if (result || number == 0) return result;
    Fault fault = std::move(result.fault());
    fault.reason = fmt::format("partner {} of it, record {}: {}", number,
                               images.numbers[number - 1], fault.reason);
    fault.partner = static_cast<std::uint64_t>(images.numbers[number - 1]);
    return fault;
  }

  Result<void> check_size(int width, int height) const {
    const double megapixels = static_cast<double>(width) * height / 1e6;
    if (width < 1 || height < 1)
      return fault(fmt::format("the header says {}x{}: there are no pixels", width, height));
    if (megapixels <= options_.max_megapixels) return {};
    return fault(
        fmt::format("the header says {}x{} = {:.6g} megapixels, and the limit is {}: raise "
                    "max_megapixels if this is real",
                    width, height, megapixels, options_.max_megapixels));
  }

  [[nodiscard]] const ImageView& view_of(std::size_t crop) const {
    return options_.views[crops_[crop].view];
  }

  // Chooses what each crop shows.
  Result<std::span<View>> choose(std::span<const ConstTensorView> in, const StoredImage& image,
                                 Scratch& scratch, Random& random, ImageNumber which) const {
    if (auto fits = check_size(image.width, image.height); !fits) return std::move(fits.fault());
    if (scratch.views.size() < crops_.size()) scratch.views.resize(crops_.size());
    const std::span views = std::span(scratch.views).first(crops_.size());
    // Where a crop needs boxes, it is the only one.
    const auto boxes = moved_.boxes(view_of(0).crop, in.subspan(1), image.upright());
    if (!boxes) return boxes.fault();
    for (std::size_t i = 0; i < views.size(); ++i) {
      // The first sequence is the one that was handed over.
      Random other = random.of_stream(crops_[i].stream);
      const int part = is_of_several() ? which.number : static_cast<int>(crops_[i].copy);
      if (auto chosen = views[i].choose(view_of(i), image, i == 0 ? random : other, part, *boxes,
                                        which.images);
          !chosen)
        return std::move(chosen.fault());
    }
    return views;
  }

  [[nodiscard]] int scale_for(std::span<const View> views) const {
    if (!options_.scaled) return 1;
    int scale = views.front().largest_scale();
    for (const View& view : views) scale = std::min(scale, view.largest_scale());
    return scale;
  }

  bool resize_into(std::span<View> views, jpeg::RowSource& rows, int left, Outputs out) const {
    for (std::size_t i = 0; i < views.size(); ++i) {
      const CropPlace& place = crops_[i];
      views[i].begin(
          out[place.output].data<std::uint8_t>() + place.copy * levels_of_crop(view_of(i)),
          options_.channels, mosaic_of(view_of(i).crop) == nullptr);
    }
    if (!run_views(views, rows, left)) return false;
    for (std::size_t i = 0; i < views.size(); ++i)
      if (!view_of(i).geometry.empty())
        views[i].write_geometry(out[crops_[i].output + 1].data<std::int32_t>() +
                                crops_[i].copy * kGeometryNumbers);
    return true;
  }

  [[nodiscard]] jpeg::Chroma chroma() const {
    return options_.decoder == JpegDecoder::reference ? jpeg::Chroma::smooth
                                                      : jpeg::Chroma::repeated;
  }

  // Gives back what is large, however an image ends.
  struct Closing {
    Scratch& scratch;
    ~Closing() {
      scratch.jpeg.close();
      jpeg::trim(scratch.pixels);
      jpeg::trim(scratch.levels);
      scratch.wide.trim();
      for (View& view : scratch.views) view.trim();
    }
  };

  Result<void> decode(std::span<const ConstTensorView> in, Scratch& scratch, Outputs out,
                      Random& random, Offer* offer, ImageNumber which) const {
    const std::span<const std::byte> bytes = in[0].bytes();
    const core::Content content = core::content_of(bytes);
    if (options_.dtype == DType::u16 && content.kind != core::ImageKind::unknown)
      return content.kind == core::ImageKind::png
                 ? decode_wide(in, scratch, out, random)
                 : fault(fmt::format("dtype u16 is for PNGs of 16 bits a level, found {} {}",
                                     content.article, content.name));
    return content.kind == core::ImageKind::jpeg
               ? decode_jpeg(in, scratch, out, random, offer, which)
               : decode_whole(in, scratch, out, random, which);
  }

  // Has the packer take a JPEG, if it can: no later than this it is known that the image is whole, and where it is cropped.
  [[nodiscard]] bool pack(std::span<const std::byte> bytes, const StoredImage& image,
                          const View& view, Outputs out, Offer& offer) const {
    const Window window = view.window();
    const bool fills = ImageSize(window.place.height, window.place.width) == window.sample;
    if (image.exif != 1 || !fills) return false;
    const auto index = options_.index->find(JpegKey::of(bytes));
    if (!index) return false;
    offer.packed = offer.packer.pack({.bytes = bytes,
                                      .index = *index,
                                      .box = window.region,
                                      .mirror = window.flipped,
                                      .size = window.sample,
                                      .filter = view_of(0).filter,
                                      .chroma = chroma()},
                                     out[0].bytes());
    if (!offer.packed) return false;
    if (!view_of(0).geometry.empty()) view.write_geometry(out[1].data<std::int32_t>());
    if (options_.stats) options_.stats->count_on_gpu();
    return true;
  }

  Result<void> decode_jpeg(std::span<const ConstTensorView> in, Scratch& scratch, Outputs out,
                           Random& random, Offer* offer, ImageNumber which) const {
    const std::span<const std::byte> bytes = in[0].bytes();
    const Closing closing{scratch};
    JpegStats* const stats = options_.stats.get();
    const Result<jpeg::Info> opened = scratch.jpeg.open(
        bytes, {.own = options_.decoder != JpegDecoder::libjpeg, .tolerant = options_.tolerant},
        stats);
    if (!opened) return with_hint(opened.fault(), scratch.jpeg);
    StoredImage image{.width = opened->width,
                      .height = opened->height,
                      .exif = options_.exif ? opened->orientation : 1};
    const Result<std::span<View>> views = choose(in, image, scratch, random, which);
    if (!views) return views.fault();
    if (views->front().is_empty()) return {};
    if (offer != nullptr && pack(bytes, image, views->front(), out, *offer)) return {};
    image.scale = scale_for(*views);
    for (View& view : *views) view.plan(image);
    const PixelRect rect = source_of(*views);
    const auto take = [&](jpeg::RowSource& rows) { return resize_into(*views, rows, rect.x, out); };
    Result<void> decoded = scratch.jpeg.decode(
        {.rect = rect, .span = row_span_of(*views), .chroma = chroma(), .scale = image.scale}, take,
        options_.index.get(), stats);
    if (!decoded) return with_hint(decoded.fault(), scratch.jpeg);
    return decoded;
  }

  [[nodiscard]] StoredImage stored(const ImageReader& reader) const {
    return {.width = reader.width(),
            .height = reader.height(),
            .exif = options_.exif ? reader.orientation() : 1};
  }

  Result<void> decode_whole(std::span<const ConstTensorView> in, Scratch& scratch, Outputs out,
                            Random& random, ImageNumber which) const {
    const std::span<const std::byte> bytes = in[0].bytes();
    const Closing closing{scratch};
    const Result<std::unique_ptr<ImageReader>> made = reader_for(bytes);
    if (!made) return made.fault();
    ImageReader& reader = **made;
    if (auto opened = reader.open(bytes); !opened) return opened;
    const StoredImage image = stored(reader);
    const Result<std::span<View>> views = choose(in, image, scratch, random, which);
    if (!views) return views.fault();
    if (views->front().is_empty()) return {};
    for (View& view : *views) view.plan(image);
    const auto width = static_cast<std::size_t>(image.width);
    const auto height = static_cast<std::size_t>(image.height);
    const std::size_t stride = width * jpeg::kPixelBytes;
    const std::size_t size = stride * height + jpeg::kRowSlack;
    if (scratch.pixels.size() < size) scratch.pixels.resize(size);
    if (auto read = reader.read(scratch.pixels.data()); !read) return read;
    if (options_.background) composite(scratch.pixels.data(), width * height, *options_.background);
    const int left = source_of(*views).x;
    jpeg::MemoryRows rows(scratch.pixels.data(), stride, left);
    (void)resize_into(*views, rows, left, out);  // these rows are there
    return {};
  }

  Result<void> decode_wide(std::span<const ConstTensorView> in, Scratch& scratch, Outputs out,
                           Random& random) const {
    const std::span<const std::byte> bytes = in[0].bytes();
    const Closing closing{scratch};
    PngReader reader;
    if (auto opened = reader.open(bytes); !opened) return opened;
    const StoredImage image = stored(reader);
    const Result<std::span<View>> views = choose(in, image, scratch, random, {});
    if (!views) return views.fault();
    const std::size_t size = static_cast<std::size_t>(image.width) *
                             static_cast<std::size_t>(image.height) *
                             static_cast<std::size_t>(options_.channels);
    if (scratch.levels.size() < size) scratch.levels.resize(size);
    if (auto read = reader.read_wide(scratch.levels.data(), options_.channels); !read) return read;
    turn_upright(scratch.levels, image, options_.channels);
    for (std::size_t i = 0; i < views->size(); ++i) {
      const ImageView& view = view_of(i);
      scratch.wide.run(
          {scratch.levels.data(), options_.channels}, (*views)[i].window(), view.filter,
          fill_of(view.crop),
          out[crops_[i].output].data<std::uint16_t>() + crops_[i].copy * levels_of_crop(view));
      if (!view.geometry.empty())
        (*views)[i].write_geometry(out[crops_[i].output + 1].data<std::int32_t>() +
                                   crops_[i].copy * kGeometryNumbers);
    }
    return {};
  }

  // In one crop of a view.
  [[nodiscard]] std::size_t levels_of_crop(const ImageView& view) const {
    const ImageSize size = view.crop.size();
    return static_cast<std::size_t>(options_.channels) * static_cast<std::size_t>(size.height) *
           static_cast<std::size_t>(size.width);
  }

  DecodeViewsOptions options_;
  Description description_;
  MovedFields moved_;
  std::size_t first_moved_ = 0;  // of the outputs
  std::vector<CropPlace> crops_;
};

}  // namespace

TransformPtr make_decoding(DecodeViewsOptions options, Description description, MovedFields moved) {
  const auto refuse = [&](const std::string& what) {
    throw std::invalid_argument(fmt::format("{}: {}", description.name, what));
  };
  if (options.field.empty()) refuse("name the field that holds the encoded image");
  if (!(options.max_megapixels > 0))
    refuse(fmt::format("max_megapixels is more than 0, found {}", options.max_megapixels));
  if (options.channels != 1 && options.channels != 3)
    refuse(fmt::format("channels are 3, of RGB, or 1, of grey; found {}", options.channels));
  for (const ImageView& view : options.views)
    check_fill(description.name, view.crop, options.channels);
  if (options.dtype != DType::u8 && options.dtype != DType::u16)
    refuse(fmt::format("dtype is u8, or u16 for PNGs of 16 bits a level; found {}",
                       name_of(options.dtype)));
  const ImageView& first = options.views.front();
  if (images_of(first.crop) != 1) {
    const std::string of_several = first.crop.to_string() + " is made of several images";
    if (moved.has_masks()) refuse(of_several + ", and takes no masks");
    if (!first.geometry.empty()) refuse(of_several + ": geometry is that of one");
    if (options.dtype != DType::u8) refuse(of_several + ", of dtype u8");
    if (copy_paste_of(first.crop) != nullptr && !moved.instances().has_masks())
      refuse(first.crop.to_string() +
             " pastes instances by their masks: name these in the option instances");
  }
  if (options.dtype == DType::u16) {
    for (const ImageView& view : options.views) check_wide_filter(description.name, view.filter);
    if (options.background) refuse("a background is for dtype u8; of u16, alpha is dropped");
  }
  if (options.background) check_color(description.name + ": background", *options.background);
  return std::make_shared<Decoding>(std::move(options), std::move(description), std::move(moved));
}

}  // namespace penstock::transform
