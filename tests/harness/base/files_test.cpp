#include "harness/base/files.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

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

TEST(Files, ALinkStaysALinkToWhatIsWritten) {
  const auto target = scratch("kvlab_link_target.txt");
  const auto link = scratch("kvlab_link.txt");
  std::filesystem::remove(link);
  std::filesystem::remove(target);
  std::filesystem::create_symlink(target, link);
  for (const char* contents : {"to a file that is not there yet", "to one that is"}) {
    ASSERT_TRUE(write_file(link, contents).ok());
    EXPECT_TRUE(std::filesystem::is_symlink(link));
    EXPECT_EQ(read_file(target).value(), contents);
  }
}

TEST(Files, APipeStaysAPipe) {
  const auto path = scratch("kvlab_pipe");
  std::filesystem::remove(path);
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const int reader = ::open(path.c_str(), O_RDWR | O_NONBLOCK);
  ASSERT_GE(reader, 0);
  ASSERT_TRUE(write_file(path, "through it").ok());
  EXPECT_TRUE(std::filesystem::is_fifo(path));
  char text[32] = {};
  EXPECT_EQ(::read(reader, text, sizeof(text)), 10);
  EXPECT_STREQ(text, "through it");
  ::close(reader);
  EXPECT_THAT(message_of(write_file(::testing::TempDir(), "into a folder")),
              HasSubstr(::testing::TempDir()));
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
