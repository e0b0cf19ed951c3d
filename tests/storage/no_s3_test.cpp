// A build without libcurl: s3:// paths are refused; the error says what to do.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <penstock/core/error.hpp>
#include <penstock/source/images.hpp>
#include <penstock/source/shards.hpp>

namespace penstock {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

TEST(WithoutObjectStorage, PathsOfObjectsAreRefusedWithTheRemedy) {
  EXPECT_FALSE(has_object_storage());
  EXPECT_THAT([] { (void)source::images("s3://bucket/train"); },
              ThrowsMessage<Error>(HasSubstr("-DPENSTOCK_S3=ON")));
  EXPECT_THAT([] { (void)source::webdataset("hf://datasets/o/n/a.tar"); },
              ThrowsMessage<Error>(HasSubstr("does not read hf:// paths: configure")));
  EXPECT_THAT([] { (void)source::webdataset("https://h/a.tar"); },
              ThrowsMessage<Error>(HasSubstr("does not read https:// paths: configure")));
  EXPECT_THAT([] { (void)source::webdataset("s3://bucket/a.tar"); },
              ThrowsMessage<Error>(HasSubstr("-DPENSTOCK_S3=ON")));
}

}  // namespace
}  // namespace penstock
