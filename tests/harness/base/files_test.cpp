#include "harness/base/files.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <csignal>

#include "harness/base/status.h"

namespace kvlab {
namespace {

using ::testing::HasSubstr;

std::filesystem::path scratch(const std::string& name) {
  return std::filesystem::path(::testing::TempDir()) / name;
}

TEST(Files, WhatIsWrittenIsRead) {
  const auto path = scratch("kvlab_files/deep/a.bin");
  const std::string contents("a\0b\n", 4);
  ASSERT_TRUE(write_file(path, contents).ok());
  EXPECT_EQ(read_file(path).value(), contents);
  EXPECT_EQ(MappedFile::open(path).value()->bytes().size(), contents.size());
}

TEST(Files, MissingFilesAndFoldersAreErrorsThatNameThePath) {
  const auto path = scratch("kvlab_no_such_file");
  EXPECT_THAT(message_of(read_file(path).status()), HasSubstr(path.string()));
  EXPECT_THAT(message_of(MappedFile::open(path).status()), HasSubstr(path.string()));
  EXPECT_THAT(message_of(read_file(::testing::TempDir()).status()),
              HasSubstr("not a regular file"));
}

TEST(Files, AFullDiskLeavesTheOldFile) {
  const auto path = scratch("kvlab_full_disk.txt");
  ASSERT_TRUE(write_file(path, "old").ok());
  struct rlimit before {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const struct rlimit small = {1000, before.rlim_max};
  std::signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const absl::Status status = write_file(path, std::string(100'000, 'x'));
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(read_file(path).value(), "old");
}

}  // namespace
}  // namespace kvlab
