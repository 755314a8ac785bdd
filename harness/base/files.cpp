#include "harness/base/files.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "harness/base/status.h"

namespace kvlab {
namespace {

// Closes a descriptor on every way out.
class Descriptor final {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) {
      ::close(fd_);
    }
  }
  int get() const { return fd_; }
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

absl::Status errno_status(const std::filesystem::path& path, std::string_view action) {
  const int error = errno;
  const std::string text =
      fmt::format("{}: cannot {}: {}", path.string(), action, std::strerror(error));
  return error == ENOENT ? absl::NotFoundError(to_absl(text))
                         : absl::FailedPreconditionError(to_absl(text));
}

absl::StatusOr<size_t> regular_file_size(const Descriptor& fd, const std::filesystem::path& path) {
  struct stat info {};
  if (::fstat(fd.get(), &info) != 0) {
    return errno_status(path, "stat");
  }
  if (!S_ISREG(info.st_mode)) {
    return invalid_argument("{}: not a regular file", path.string());
  }
  return static_cast<size_t>(info.st_size);
}

absl::Status write_all(const Descriptor& fd, std::string_view contents,
                       const std::filesystem::path& path) {
  size_t done = 0;
  while (done < contents.size()) {
    const ssize_t n = ::write(fd.get(), contents.data() + done, contents.size() - done);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return errno_status(path, "write");
    }
    done += static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

// What `path` links to, through any number of links, there or not; itself where it is no link.
absl::StatusOr<std::filesystem::path> behind_links(std::filesystem::path path) {
  constexpr int kMostLinks = 40;  // as Linux follows
  std::error_code error;
  for (int i = 0; i < kMostLinks; ++i) {
    if (!std::filesystem::is_symlink(path, error)) {
      return path;
    }
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) {
      return failed_precondition("{}: cannot follow the link: {}", path.string(), error.message());
    }
    path = path.parent_path() / target;  // an absolute target replaces all
  }
  return failed_precondition("{}: too many links, one to the next", path.string());
}

// For what a rename must not replace: a device, a pipe.
absl::Status write_in_place(const std::filesystem::path& path, std::string_view contents) {
  Descriptor fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (fd.get() < 0) {
    return errno_status(path, "open");
  }
  KVLAB_RETURN_IF_ERROR(write_all(fd, contents, path));
  return ::close(fd.release()) == 0 ? absl::OkStatus() : errno_status(path, "write");
}

}  // namespace

absl::StatusOr<std::string> read_file(const std::filesystem::path& path) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) {
    return errno_status(path, "open");
  }
  KVLAB_ASSIGN_OR_RETURN(const size_t size, regular_file_size(fd, path));
  std::string contents(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t n = ::read(fd.get(), contents.data() + done, size - done);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0) {
      return errno_status(path, "read");
    }
    if (n == 0) {
      break;
    }
    done += static_cast<size_t>(n);
  }
  contents.resize(done);
  return contents;
}

absl::Status write_file(const std::filesystem::path& path, std::string_view contents) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error)) {
    return write_in_place(path, contents);
  }
  KVLAB_ASSIGN_OR_RETURN(const std::filesystem::path target, behind_links(path));
  if (target.has_parent_path()) {
    std::filesystem::create_directories(target.parent_path(), error);
    if (error) {
      return failed_precondition("{}: cannot create folder: {}", target.parent_path().string(),
                                 error.message());
    }
  }
  std::filesystem::path temporary = target;
  temporary += fmt::format(".tmp{}", ::getpid());
  Descriptor fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (fd.get() < 0) {
    return errno_status(target, "create");
  }
  if (const absl::Status status = write_all(fd, contents, target); !status.ok()) {
    ::unlink(temporary.c_str());
    return status;
  }
  if (::close(fd.release()) != 0 || ::rename(temporary.c_str(), target.c_str()) != 0) {
    const absl::Status status = errno_status(target, "write");
    ::unlink(temporary.c_str());
    return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const MappedFile>> MappedFile::open(
    const std::filesystem::path& path) {
  Descriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) {
    return errno_status(path, "open");
  }
  KVLAB_ASSIGN_OR_RETURN(const size_t size, regular_file_size(fd, path));
  if (size == 0) {
    return invalid_argument("{}: the file is empty", path.string());
  }
  void* data = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (data == MAP_FAILED) {
    return errno_status(path, "map");
  }
  return std::shared_ptr<const MappedFile>(
      new MappedFile(path, static_cast<const std::byte*>(data), size));
}

MappedFile::~MappedFile() { ::munmap(const_cast<std::byte*>(data_), size_); }

std::filesystem::path cache_dir() {
  if (const char* cache = std::getenv("KVLAB_CACHE"); cache != nullptr && *cache != '\0') {
    return cache;
  }
  const char* home = std::getenv("HOME");
  return std::filesystem::path(home != nullptr ? home : "/root") / ".cache" / "kvlab";
}

std::filesystem::path model_path(const std::string& name_or_path) {
  const std::filesystem::path given(name_or_path);
  const std::filesystem::path named = cache_dir() / "models" / given;
  std::error_code ignored;
  return !std::filesystem::exists(given, ignored) && std::filesystem::exists(named, ignored)
             ? named
             : given;
}

}  // namespace kvlab
