// SQLite with absl::Status and no leaks: a connection, a prepared statement, a transaction.
#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

struct sqlite3;
struct sqlite3_stmt;

namespace kvlab {

class Statement;

class Database final {
 public:
  enum class Mode { kCreate, kWrite, kRead };

  // Opens the file, proves that it is a database, sets busy timeout and foreign keys; changes
  // nothing yet. Errors name the file and say what to do.
  static absl::StatusOr<std::unique_ptr<Database>> open(const std::filesystem::path& path,
                                                        Mode mode,
                                                        std::chrono::milliseconds busy_timeout);

  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  ~Database();

  // One or more statements without parameters; rows are ignored.
  absl::Status execute(const std::string& sql);
  absl::StatusOr<Statement> prepare(std::string_view sql) const;
  // A statement that is prepared once and handed out again, reset; never use two of one text at
  // the same time.
  absl::StatusOr<Statement*> cached(const std::string& sql);
  // The first column of the first row, which must exist.
  absl::StatusOr<int64_t> query_int(std::string_view sql) const;

  // Makes another file readable, not writable, as `name`.tables. Not within a transaction.
  absl::Status attach(const std::filesystem::path& path, const std::string& name);

  int64_t last_insert_id() const;
  bool in_transaction() const;
  const std::filesystem::path& path() const { return path_; }

  // What SQLite's result code means for this file, in words a user can act on.
  absl::Status error(int code, std::string_view action) const;

 private:
  Database(std::filesystem::path path, sqlite3* db) : path_(std::move(path)), db_(db) {}

  std::filesystem::path path_;
  sqlite3* db_;
  std::unordered_map<std::string, std::unique_ptr<Statement>> cache_;
};

// Parameters and columns are numbered as SQLite does: parameters from 1, columns from 0.
class Statement final {
 public:
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  ~Statement();

  Statement& bind(int index, int64_t value);
  Statement& bind(int index, double value);
  Statement& bind(int index, std::string_view text);  // copied; invalid UTF-8 becomes U+FFFD
  Statement& bind_blob(int index, std::string_view bytes);
  Statement& bind_null(int index);
  Statement& bind(int index, const std::optional<int64_t>& value);
  // int, bool and literals would otherwise be ambiguous.
  Statement& bind(int index, int value) { return bind(index, static_cast<int64_t>(value)); }
  Statement& bind(int index, bool value) { return bind(index, static_cast<int64_t>(value)); }
  Statement& bind(int index, const char* text) { return bind(index, std::string_view(text)); }
  Statement& bind(int index, const std::string& text) {
    return bind(index, std::string_view(text));
  }

  // True: a row is ready. False: done. A failed bind is reported here.
  absl::StatusOr<bool> step();
  // Steps a statement that returns no rows, and makes it ready for the next use.
  absl::Status run();
  void reset();

  bool is_null(int column) const;
  int64_t int64(int column) const;
  double real(int column) const;
  std::string text(int column) const;
  std::string_view text_view(int column) const;  // valid until the next step or reset
  std::string blob(int column) const;
  std::optional<int64_t> optional_int64(int column) const;

 private:
  friend class Database;
  Statement(const Database* db, sqlite3_stmt* statement) : db_(db), statement_(statement) {}
  void note(int code);

  const Database* db_;
  sqlite3_stmt* statement_;
  int bind_error_ = 0;
};

// Rolls back unless committed. Takes the write lock at once, so that two writers wait for each
// other instead of failing half way.
class Transaction final {
 public:
  static absl::StatusOr<Transaction> begin(Database& db);
  Transaction(Transaction&& other) noexcept : db_(other.db_) { other.db_ = nullptr; }
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();

  absl::Status commit();

 private:
  explicit Transaction(Database& db) : db_(&db) {}

  Database* db_;
};

}  // namespace kvlab
