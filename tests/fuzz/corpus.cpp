// Writes the files that fuzzing begins with: small JPEGs of every kind, and indices of them; PNGs and WebPs; tar and MDS shards, .npy,
// TFRecord, Parquet and Arrow files, token files, entries of the object cache, what S3 servers answer, what other processes send, states and plans.
//
// Usage: penstock_fuzz_corpus FOLDER      makes FOLDER/jpeg, index, pictures, tar, records, parquet, arrow, mds, annotations, tokens, cache, answers, files, messages and texts
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <penstock/penstock.hpp>

#include "src/loader/row_message.hpp"
#include "src/source/folder/listing.hpp"
#include "src/source/stream/queue_protocol.hpp"
#include "src/storage/cache_entry.hpp"
#include "tests/fuzz/cache_entry.hpp"
#include "tests/fuzz/index_image.hpp"
#include "tests/jpeg/images.hpp"
#include "tests/loader/fakes.hpp"
#include "tests/project_path.hpp"
#include "tests/source/mds_files.hpp"
#include "tests/source/npy_files.hpp"
#include "tests/source/parquet/read_file.hpp"
#include "tests/source/shards.hpp"

namespace {

using namespace penstock;
using namespace penstock::testing_images;

void write(const std::filesystem::path& file, const Bytes& bytes) {
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), std::ssize(bytes));
}

std::vector<JpegKind> kinds() {
  std::vector<JpegKind> all;
  for (const auto& luma : {std::array{1, 1}, {2, 1}, {1, 2}, {2, 2}, {4, 1}, {4, 2}})
    for (const int restart : {0, 1, 5})
      all.push_back({.name = std::to_string(10 * luma[0] + luma[1]) + "_" + std::to_string(restart),
                     .sampling = {luma, {1, 1}, {1, 1}},
                     .restart = restart});
  all.push_back(
      {.name = "grey", .input = JCS_GRAYSCALE, .stored = JCS_GRAYSCALE, .sampling = {{2, 2}}});
  all.push_back({.name = "rgb", .stored = JCS_RGB});
  all.push_back({.name = "cmyk", .input = JCS_CMYK, .stored = JCS_CMYK});
  all.push_back({.name = "progressive", .progressive = true});
  all.push_back({.name = "scans", .interleaved = false});
  all.push_back({.name = "exif", .app1 = exif_app1(6)});
  return all;
}

void write_text(const std::filesystem::path& file, const std::string& text) {
  std::ofstream(file, std::ios::binary) << text;
}

void write_tars(const std::filesystem::path& folder) {
  using namespace penstock::test;
  std::filesystem::create_directories(folder);
  const std::string name(120, 'k');
  const std::string pax = fmt::format(" path={}.jpg\n", name);
  const std::string member = tar_member("a.jpg", "image") + tar_member("a.cls", "7");
  write_text(folder / "plain", plain_tar(2));
  write_text(folder / "pax",
             tar_member("./PaxHeaders/x", fmt::format("{}{}", pax.size() + 3, pax), 'x') + member +
                 tar_end());
  write_text(folder / "size",
             tar_member("./PaxHeaders/x", "10 size=5\n", 'x') + member + tar_end());
  write_text(folder / "long", tar_member("././@LongLink", name + ".cls" + '\0', 'L') + member);
  write_text(folder / "global", tar_member("pax_global_header", "14 path=b.cls\n", 'g') + member);
  write_text(folder / "sparse", member + tar_member("b.jpg", "x", 'S') + tar_end());
  write_text(folder / "joined", member + tar_end() + member + tar_end());
  write_text(folder / "folders",
             tar_member("d/", "", '5') + tar_member("d/l.jpg", "", '2') + member);
  write_text(folder / "gzip", "\x1F\x8B\x08 and so on");
}

void write_cache_entries(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const std::size_t bytes : {0, 1, 300}) {
    const std::string text(bytes, 'x');
    write_text(folder / std::to_string(bytes),
               storage::cache_entry_head(fuzz::kCacheKey, std::as_bytes(std::span(text))) + text);
  }
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// Each with its last byte, which says how it is read; Megatron's index and tokens as halves of one file.
void write_tokens(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const std::filesystem::path golden(test::project_path("tests/source/golden"));
  for (const char* name : {"tokens.npy", "llmc_gpt2.bin", "llmc_llama3.bin", "nanogpt.bin"})
    for (const char how : {'\x01', '\x03', '\x0A'})
      write_text(folder / fmt::format("{}_{}", name, static_cast<int>(how)),
                 text_of(golden / name) + how);
  for (const char* name : {"megatron_u16", "megatron_i32", "megatron_modes"}) {
    std::string index = text_of(golden / (std::string(name) + ".idx"));
    std::string tokens = text_of(golden / (std::string(name) + ".bin"));
    const std::size_t longer = std::max(index.size(), tokens.size());
    // The modes are what may follow an index: so many bytes more make one that is damaged.
    if (index.size() == longer) tokens.resize(longer);
    for (const char how : {'\x80', '\x81', '\x82'}) {
      write_text(folder / fmt::format("{}_{}", name, static_cast<unsigned char>(how)),
                 index + tokens.substr(0, index.size()) + how);
      write_text(folder / fmt::format("{}_{}_cut", name, static_cast<unsigned char>(how)),
                 index + std::string(index.size(), '\0') + how);
    }
  }
}

void write_answers(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  write_text(folder / "page",
             "<?xml version=\"1.0\"?><ListBucketResult><EncodingType>url</EncodingType>"
             "<IsTruncated>true</IsTruncated><NextContinuationToken>t</NextContinuationToken>"
             "<Contents><Key>a%20b</Key><Size>12</Size><ETag>&quot;0f&quot;</ETag></Contents>"
             "<CommonPrefixes><Prefix>c/</Prefix></CommonPrefixes></ListBucketResult>");
  write_text(folder / "error",
             "<Error><Code>NoSuchKey</Code><Message>none</Message><Region>r</Region></Error>");
  write_text(folder / "sts",
             "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>k</AccessKeyId>"
             "<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken>"
             "<Expiration>2030-01-02T03:04:05Z</Expiration></Credentials></AssumeRoleResult>"
             "</AssumeRoleResponse>");
  write_text(folder / "upload",
             "<InitiateMultipartUploadResult><UploadId>u</UploadId>"
             "</InitiateMultipartUploadResult>");
  write_text(folder / "uploads",
             "<ListMultipartUploadsResult><EncodingType>url</EncodingType><IsTruncated>true"
             "</IsTruncated><NextKeyMarker>k</NextKeyMarker><NextUploadIdMarker>u"
             "</NextUploadIdMarker><Upload><Key>a%20b</Key><UploadId>u</UploadId></Upload>"
             "</ListMultipartUploadsResult>");
  write_text(folder / "completed",
             "<CompleteMultipartUploadResult><ETag>x</ETag></CompleteMultipartUploadResult>");
  write_text(
      folder / "tree",
      R"([{"type":"directory","oid":"1","size":0,"path":"a"},{"type":"file","oid":"2","size":3,)"
      R"("path":"a/b","lfs":{"oid":"4","size":3,"pointerSize":1},"xetHash":"5"}])");
  write_text(folder / "commit", R"({"sha":"0123456789abcdef0123456789abcdef01234567"})");
  write_text(folder / "link", "<https://h/api?cursor=1&limit=3>; rel=\"next\"");
  write_text(folder / "limit", "\"api\";r=0;t=55");
  write_text(folder / "location", "//host:80/a?b#c");
  write_text(folder / "hub_url", "datasets/o/n@refs/convert/parquet/a/b");
  write_text(folder / "profile", "[default]\nregion = r # \n[profile a]\naws_access_key_id=k\n");
}

void write_records(const std::filesystem::path& folder) {
  using namespace penstock::test;
  std::filesystem::create_directories(folder);
  const std::filesystem::path golden(test::project_path("tests/source/golden"));
  write_text(folder / "npy", text_of(golden / "tokens.npy") + '\x00');
  std::string empty(kNoRows);
  empty.replace(empty.find("(0, 4)"), 6, "(1000, 0)").erase(empty.size() - 4, 3);
  write_text(folder / "npy_empty", empty + '\x00');
  const std::string example = plain_example("an image", 7);
  write_text(folder / "example", example + '\x01');
  const std::string floats = wire(1, feature("f", 2, wire(1, raw(1.5F) + raw(2.5F))) +
                                         feature("n", 3, wire(1, "\x01\x96\x01")));
  write_text(folder / "floats", floats + '\x01');
  const std::string texts = feature("t", 1, wire(1, "abc") + wire(1, "de") + wire(1, ""));
  const std::string pairs = wire(1, wire(2, wire(1, raw(1.F) + raw(2.F))));
  const std::string ragged = wire(1, wire(3, wire(1, "\x01\x02"))) + wire(1, "") +
                             wire(1, wire(1, wire(1, "x")) + wire(3, "\x08\x03"));
  const std::string sequence =
      wire(1, texts + feature("n", 3, "\x08\x05" + wire(1, "\x06\x07"))) +
      wire(2, wire(1, wire(1, "f") + wire(2, pairs + pairs)) +
                  wire(1, wire(1, "r") + wire(2, ragged)) +
                  wire(1, wire(1, "frames") + wire(2, wire(1, wire(1, wire(1, "jpeg"))) +
                                                          wire(1, wire(1, wire(1, "jp"))))));
  write_text(folder / "sequence", sequence + '\x01');
  for (const char how : {'\x02', '\x03'})
    write_text(folder / fmt::format("tfrecord_{}", static_cast<int>(how)),
               frame(example) + frame("") + frame(floats) + how);
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void write_messages(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  // Of a rendezvous: u32 length, a kind, and texts with their lengths.
  const auto number = [](std::size_t value) {
    const auto word = static_cast<std::uint32_t>(value);
    return std::string(reinterpret_cast<const char*>(&word), sizeof word);
  };
  std::string pending(1, '\x0F');
  for (const std::string text : {"0", "12", "1", "3", "barrier()"})
    pending += number(text.size()) + text;
  write_text(folder / "frames",
             std::string(1, '\0') + number(pending.size()) + pending + number(1) + '\x08');
  const std::array<std::int64_t, 3> record{1, 2, 7};  // two extents, and the label behind the image
  std::string packed(reinterpret_cast<const char*>(record.data()), sizeof record);
  write_text(folder / "record", '\x05' + packed.insert(16, 6, 'p'));
  write_text(
      folder / "hello",
      '\x01' + source::write_hello(
                   {"a client", {{"image", DType::u8, {kDynamic, 3}}, {"label", DType::i64, {}}}}));
  const loader::RowPlace place{.step = 1, .rows = 2};
  RowBytes answer = loader::make_answer(16);
  loader::RowFindings findings{
      .bytes_read = 5, .replaced = {{1, {.number = 3}}}, .learned = {std::byte{1}}};
  findings.faults.push_back({.reason = "bad", .file = "f"});
  loader::complete_answer(answer, place, 16, findings, {});
  write_text(folder / "answer", '\x02' + text_of(std::span<const std::byte>(answer.bytes())));
  const std::vector<SampleId> samples{{.number = 1}, {.number = 7, .epoch = 2}};
  write_text(folder / "request", '\x03' + text_of(loader::write_request(place, samples)));
  write_text(folder / "settings",
             '\x04' + loader::RowSettings{.seed = 7, .identity = "[{\"op\": \"read\"}]"}.to_json());
}

// Whole files, and each first page of a column with what the footer says of it, as parquet_fuzz reads them.
void write_parquet(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const auto& entry :
       std::filesystem::directory_iterator(test::project_path("tests/source/parquet/files"))) {
    if (entry.path().extension() != ".parquet") continue;
    const std::string name = entry.path().stem();
    const std::string text = text_of(entry.path());
    write_text(folder / name, text + '\0');
    test::ParquetFileInMemory file(entry.path());
    const auto footer = file.footer();
    if (!footer || footer->row_groups.empty()) continue;
    for (std::size_t i = 0; i < footer->schema.leaves.size(); ++i) {
      const source::ParquetLeaf& leaf = footer->schema.leaves[i];
      const source::ParquetChunk& chunk = footer->row_groups[0].chunks[i];
      const auto pages =
          source::scan_parquet_chunk(leaf, chunk, footer->row_groups[0].rows, file.reader(), name);
      if (!pages || pages->data.empty()) continue;
      const source::ParquetPage& page = pages->data[0];
      const std::string head{static_cast<char>(leaf.type),
                             static_cast<char>(leaf.type_length == 0 ? 0 : leaf.type_length - 1),
                             static_cast<char>(leaf.max_definition),
                             static_cast<char>(leaf.max_repetition),
                             static_cast<char>(chunk.codec)};
      write_text(folder / fmt::format("{}_{}", name, i),
                 head + text.substr(page.offset, page.end() - page.offset) + '\1');
    }
  }
}

// Whole files, columns, formats and JSON, as arrow_fuzz reads them.
void write_arrow(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  for (const auto& entry :
       std::filesystem::directory_iterator(test::project_path("tests/source/arrow/files")))
    if (entry.path().extension() == ".arrow")
      write_text(folder / entry.path().stem(), text_of(entry.path()) + '\0');
  for (const char kind : {2, 4, 6, 12, 13, 16, 19, 21})
    for (const char dictionary : {0, 1}) {
      std::string column{kind, 3, 2, dictionary, 0, 0};
      for (const char length : {9, 40, 3, 2, 80, 60}) column += {length, '\0'};
      column += {'\0', '\0', '\xFF', '\0'};
      for (int i = 0; i < 20; ++i) column += {static_cast<char>(i), '\0', '\0', '\0'};
      write_text(folder / fmt::format("column_{}_{}", static_cast<int>(kind), int{dictionary}),
                 column + std::string(60, 'x') + '\1');
    }
  int number = 0;
  for (const char* format : {"tsu:Europe/Berlin", "d:19,10,256", "w:42", "+w:3", "+ud:4,5", "tiD"})
    write_text(folder / fmt::format("format_{}", number++), std::string(format) + '\2');
  const std::string value = R"({"dtype": "int8", "_type": "Value"})";
  write_text(
      folder / "features",
      R"({"info": {"features": {"i": {"_type": "Image"}, "l": {"names": ["a"], "_type": "ClassLabel"},
                 "s": {"feature": {"x": )" +
          value + R"(}, "length": 3, "_type": "Sequence"},
                 "a": {"shape": [null, 2], "dtype": "int8", "_type": "Array2D"}, "o": [)" +
          value + "]}}}\3");
  write_text(folder / "state",
             R"({"_data_files": [{"filename": "a.arrow"}], "_split": null, "splits": ["train"]})"
             "\3");
}

// As files_fuzz reads them.
void write_files(const std::filesystem::path& folder, const MemoryJpegIndex& indices,
                 const JpegIndex& one) {
  using namespace penstock::test;
  std::filesystem::create_directories(folder);
  write_text(folder / "indices", '\x00' + text_of(std::span<const std::byte>(indices.to_bytes())));
  {
    SharedJpegIndex shared(folder / "shared", 64 << 10);
    for (std::uint64_t number = 0; number < 4; ++number)
      shared.put({.size = number, .hash = {number, 0}}, one);
  }
  write_text(folder / "shared", '\x01' + text_of(folder / "shared"));
  {
    const TemporaryFolder data;
    data.write("a.tar", plain_tar(3));
    (void)source::webdataset(data.path(), {.index = {.location = IndexLocation::next_to_data}});
    write_text(folder / "index", '\x02' + text_of(data / "a.tar.penstock-index"));
  }
  write_text(folder / "labels",
             "\x03"
             "a.jpg 1\nb c.jpg,2\nd.jpg\t3\n");
  write_text(folder / "classes",
             "\x03"
             "d.jpg great white shark\nb c.jpg,ant\na.jpg, ant\n");
  PrepareReport report{.samples = 3, .kept = {{"bad", 1}}, .listed = {"a: left out"}};
  write_text(folder / "report", '\x04' + report.to_json());
  write_text(folder / "digest", '\x05' + Digest{}.to_string());
  {
    const TemporaryFolder data;
    const TemporaryFolder cache;
    for (const char* name : {"a/1.jpg", "a/b/2.jpg", "c/3.jpg", "c/x.txt"}) data.write(name);
    (void)source::list_files(data.path(),
                             {.endings = {".jpg"},
                              .keep_from = 1,
                              .cache = cache.path(),
                              .settled_after = std::chrono::seconds(0)},
                             storage::Storage());
    for (const auto& entry : std::filesystem::directory_iterator(cache / "listings"))
      write_text(folder / "listing", '\x06' + text_of(entry.path()));
  }
}

void write_texts(const std::filesystem::path& folder) {
  using namespace penstock::testing_support;
  std::filesystem::create_directories(folder);
  const Registry registry = fake_registry();
  const Dataset plain =
      Dataset(fake(100)).shuffle({.buffer = 9}).seed(7).repeat(2).take(50).batch(4);
  const Dataset mixed =
      mix({Dataset(fake(9)).skip(1).shard(3, 1), Dataset(fake(5)).repeat_each(2)}).seed(7).batch(4);
  const Dataset picked = Dataset(fake(20)).select({1, 3, 5}).sample({1, 2, 3}).seed(1).batch(
      2, {.remainder = Remainder::pad});
  int which = 0;
  const Dataset partnered =
      Dataset(fake(9)).take(7).partners({.count = 2, .until_epoch = 3}).batch(4);
  for (const Dataset& plan : {plain, mixed, picked, partnered.seed(2)}) {
    write_text(folder / fmt::format("plan_{}", which), plan.to_json({.registry = registry}));
    write_text(folder / fmt::format("state_{}", which++), plan.loader().state().to_json());
  }
}

void write_digests(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  std::string text = "penstock-digests 1 2\n";
  write_text(folder / "none", text);
  for (std::uint64_t step = 8; step < 12; ++step)
    text += fmt::format("{} {}\n", step, Digest{step, ~step}.to_string());
  write_text(folder / "steps", text);
}

void write_pictures(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  unsigned seed = 0;
  for (const int channels : {1, 3, 4}) {
    const Pixels pixels = picture(13, 9, channels, ++seed);
    write(folder / fmt::format("{}.png", channels), png_of(pixels));
    if (channels == 1) continue;
    write(folder / fmt::format("{}_lossless.webp", channels), webp_of(pixels, true));
    if (channels == 3) write(folder / "lossy.webp", webp_of(pixels, false));
  }
  const std::vector<std::uint8_t> samples(13 * 9 * 8, 77);
  write(folder / "wide.png", png_of(13, 9, {samples.begin(), samples.begin() + 13 * 9 * 6},
                                    {.bits = 16, .interlaced = true}));
  write(folder / "grey16.png", png_of(13, 9, {samples.begin(), samples.begin() + 13 * 9 * 2},
                                      {.color = PNG_COLOR_TYPE_GRAY, .bits = 16}));
  write(folder / "palette.png",
        png_of(13, 9, std::vector<std::uint8_t>(13 * 9, 1),
               {.color = PNG_COLOR_TYPE_PALETTE, .palette = {{1, 2, 3}, {4, 5, 6}}}));
  for (const auto& file :
       std::filesystem::directory_iterator(test::project_path("tests/transform/formats")))
    if (file.path().extension() != ".py" && file.path().extension() != ".txt")
      std::filesystem::copy_file(file.path(), folder / file.path().filename());
}

// Each shard with the number of the columns that mds_fuzz reads it with.
void write_mds(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const auto files = test::project_path("tests/source/mds/files");
  for (const auto& entry : std::filesystem::recursive_directory_iterator(files)) {
    const std::string name = entry.path().filename().string();
    const bool is_index = name == "index.json";
    if (!is_index && name.find(".mds") == name.npos) continue;
    const std::string text = test::read_text(entry.path());
    const char form = is_index ? '\0' : name.ends_with(".zstd") ? '\1' : '\2';
    const std::string set = entry.path().parent_path().filename().string();
    write_text(folder / (set + "_" + name), text + '\0' + form);
  }
  using Columns = std::vector<test::MdsTestColumn>;
  const std::vector<Columns> layouts{
      {{"a", "bytes"}, {"b", "json"}, {"c", "str_int"}},
      {{"a", "int", 8}, {"b", "jpeg"}, {"c", "uint64", 8}},
      {{"a", "ndarray"}, {"b", "ndarray:int32"}, {"c", "ndarray:float16:2,3", 12}},
      {{"a", "jpegarray"}, {"b", "list[png]"}, {"c", "str_float"}}};
  const std::string list = test::mds_bytes(2U) + test::mds_bytes(1U) + test::mds_bytes(3U) + "wxyz";
  const std::string array = std::string("\x04\x02", 2) + std::string(8, 'v');
  const std::string eight(8, '\x07');
  const std::vector<test::MdsTestRow> rows{{"bytes", "{}", "-17"},
                                           {eight, "image", eight},
                                           {"\x21" + array, array, std::string(12, 'h')},
                                           {list, test::mds_bytes(0U) + list, "1.5e3"}};
  for (std::size_t i = 0; i < layouts.size(); ++i)
    write_text(
        folder / std::to_string(i),
        test::mds_shard(layouts[i], {rows[i], rows[i], rows[i]}) + static_cast<char>(i) + '\2');
}

// Of COCO's form: boxes, keypoints, crowds with RLE, and nothing. Of YOLO's: boxes and polygons, and keypoints. Of Pascal VOC's: two
// objects.
void write_annotations(const std::filesystem::path& folder) {
  std::filesystem::create_directories(folder);
  const std::string images =
      R"("images": [{"id": 9, "file_name": "b.jpg", "width": 640}, {"file_name": "a/a.png", "id": 3}])";
  const std::string categories =
      R"("categories": [{"id": 18, "name": "dog"}, {"id": 1, "name": "person", "keypoints": ["nose", "eye"]}])";
  write_text(
      folder / "boxes.json",
      "{\"info\": {\"year\": 2017}, " + images + ", " + categories +
          R"(, "annotations": [{"id": 1, "image_id": 9, "category_id": 18, "bbox": [1, 2.5, 30, 4e1],
                 "area": 1200.5, "iscrowd": 0, "segmentation": [[1, 2, 3, 4, 5, 6.5]]}]})");
  write_text(
      folder / "keypoints.json",
      R"({"annotations": [{"keypoints": [1, 2, 2, 0, 0, 0], "num_keypoints": 1, "bbox": [0, 0, 5, 5],
             "image_id": 3, "category_id": 1, "id": 2}, {"segmentation": {"counts": [1, 2], "size": [3, 1]},
             "bbox": [0, 0, 0, 0], "iscrowd": 1, "image_id": 3, "category_id": 1, "id": 4}], )" +
          categories + ", " + images + "}");
  write_text(folder / "polygons.json",
             "[[[1, 2, 3, 4.5, -5, 6e0]], [], [[0,0,7,0,7,5],[1,1,2,2,3,-1]]]");
  write_text(folder / "runs.json",
             R"([{"size": [5, 7], "counts": [3, 2, 30]}, {"counts": "T1", "size": [5, 7]}])");
  write_text(folder / "none.json", "{" + images + "}");
  write_text(folder / "boxes.txt",
             "\xef\xbb\xbf"
             "2 0.5 0.25 0.125 1\r\n\n0 0.1 0.1 0.9 0.1 0.9 0.9\n");
  write_text(
      folder / "objects.xml",
      "<?xml version=\"1.0\"?>\n<annotation><filename>a.jpg</filename><object><name>cat</name>"
      "<truncated>1</truncated><bndbox><xmin>1</xmin><ymin>2.5</ymin><xmax>30</xmax><ymax>4"
      "</ymax></bndbox></object><object><name>dog</name><difficult>0</difficult><bndbox>"
      "<ymax>9</ymax><xmax>9</xmax><ymin>9</ymin><xmin>9</xmin></bndbox></object>"
      "</annotation>");
  write_text(folder / "keypoints.txt", "1 .5 .5 1 1 .1 .2 2 0 0 0\n0 .5 .5 1 1 -0.001 .2 .3 .4\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  const std::filesystem::path folder(argv[1]);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder / "jpeg");
  std::filesystem::create_directories(folder / "index");
  write_tars(folder / "tar");
  write_cache_entries(folder / "cache");
  write_answers(folder / "answers");
  write_tokens(folder / "tokens");
  write_records(folder / "records");
  write_parquet(folder / "parquet");
  write_arrow(folder / "arrow");
  write_mds(folder / "mds");
  write_annotations(folder / "annotations");
  write_messages(folder / "messages");
  write_texts(folder / "texts");
  write_digests(folder / "digests");
  write_pictures(folder / "pictures");
  unsigned seed = 0;
  for (JpegKind kind : kinds()) {
    for (const auto& [width, height, quality] :
         {std::array{1, 1, 90}, {9, 7, 30}, {40, 33, 95}, {130, 90, 60}}) {
      kind.quality = quality;
      const int channels = kind.input == JCS_GRAYSCALE ? 1 : kind.input == JCS_CMYK ? 4 : 3;
      write(folder / "jpeg" / (kind.name + "_" + std::to_string(width) + ".jpg"),
            jpeg_of(picture(width, height, channels, ++seed), kind));
    }
  }
  MemoryJpegIndex all;
  JpegIndex last;
  for (int which = 0; which < fuzz::kIndexImages; ++which) {
    const Bytes jpeg = fuzz::index_image(which);
    const auto store = std::make_shared<MemoryJpegIndex>();
    const TransformPtr transform = decode_image({.crop = resize_to(8), .index = store});
    std::vector<std::uint8_t> pixels(8 * 8 * 3);
    const ConstTensorView in(jpeg.data(), DType::u8, {std::ssize(jpeg)});
    const std::vector<TensorView> out{
        {reinterpret_cast<std::byte*>(pixels.data()), DType::u8, {8, 8, 3}}};
    Random random(RandomKey(1, 1), SampleId{});
    if (!transform->apply(std::span(&in, 1), out, random)) return 1;
    const auto index = store->find(JpegKey::of(jpeg));
    if (index == nullptr) return 1;
    all.put(JpegKey::of(jpeg), *index);
    last = *index;
    Bytes bytes = index->to_bytes();
    bytes.insert(bytes.begin(), {static_cast<std::byte>(which), std::byte{0x35}});
    write(folder / "index" / std::to_string(which), bytes);
  }
  write_files(folder / "files", all, last);
  return 0;
}
