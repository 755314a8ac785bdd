#include "results/sqlite.h"

#include <sqlite3.h>

#include <cstring>
#include <utility>

#include "harness/base/status.h"
#include "harness/text/utf8.h"

namespace kvlab {
namespace {

// A file: URI with everything escaped that has a meaning there.
std::string file_uri(const std::filesystem::path& path, std::string_view query) {
  std::string uri = "file:";
  for (const char c : std::filesystem::absolute(path).string()) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '/' || c == '.' || c == '_' || c == '-';
    uri += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return uri + "?" + std::string(query);
}

bool has_wal(const std::filesystem::path& path) {
  std::filesystem::path wal = path;
  wal += "-wal";
  std::error_code ignored;
  const auto size = std::filesystem::file_size(wal, ignored);
  return !ignored && size > 0;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Database>> Database::open(const std::filesystem::path& path,
                                                         Mode mode,
                                                         std::chrono::milliseconds busy_timeout) {
  std::error_code error;
  const bool exists = std::filesystem::exists(path, error);
  if (std::filesystem::is_directory(path, error)) {
    return invalid_argument("{}: is a folder, not a database file", path.string());
  }
  if (!exists && mode != Mode::kCreate) {
    return not_found("{}: no such file", path.string());
  }
  if (!exists && path.has_parent_path()) {
    std::filesystem::create_directories(path.parent_path(), error);
    if (error) {
      return failed_precondition("{}: cannot create folder: {}", path.parent_path().string(),
                                 error.message());
    }
  }
  const auto open_with = [&](int flags, std::string_view query) {
    sqlite3* raw = nullptr;
    const std::string uri = file_uri(path, query);
    const int code = sqlite3_open_v2(uri.c_str(), &raw, flags | SQLITE_OPEN_URI, nullptr);
    std::unique_ptr<Database> db(new Database(path, raw));
    absl::Status status = code == SQLITE_OK ? absl::OkStatus() : db->error(code, "open");
    if (status.ok()) {
      sqlite3_extended_result_codes(raw, 1);
      sqlite3_busy_timeout(raw, static_cast<int>(busy_timeout.count()));
      // Opening is lazy; reading the schema proves that this is a database.
      status = db->query_int("SELECT count(*) FROM sqlite_schema").status();
    }
    return std::make_pair(status, std::move(db));
  };
  const int flags = mode == Mode::kRead    ? SQLITE_OPEN_READONLY
                    : mode == Mode::kWrite ? SQLITE_OPEN_READWRITE
                                           : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  auto [status, db] = open_with(flags, "");
  if (!status.ok() && mode == Mode::kRead && exists && !has_wal(path) &&
      absl::IsFailedPrecondition(status)) {
    // A WAL database in a folder that we may not write to. With no pending log, nobody writes.
    std::tie(status, db) = open_with(flags, "immutable=1");
  }
  KVLAB_RETURN_IF_ERROR(status);
  KVLAB_RETURN_IF_ERROR(db->execute("PRAGMA foreign_keys = ON"));
  return std::move(db);
}

Database::~Database() {
  cache_.clear();
  sqlite3_close(db_);
}

absl::Status Database::error(int code, std::string_view action) const {
  const std::string where = path_.string();
  const int os_error = sqlite3_system_errno(db_);
  const std::string os_text = os_error != 0 ? fmt::format(": {}", std::strerror(os_error)) : "";
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      return invalid_argument("{}: not an SQLite database", where);
    case SQLITE_CANTOPEN:
      return failed_precondition("{}: cannot open the database{}", where, os_text);
    case SQLITE_PERM:
    case SQLITE_READONLY:
      return failed_precondition(
          "{}: cannot write: the database or its folder is read-only; give write permission to "
          "both, or name another file",
          where);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return unavailable(
          "{}: the database is locked by another process; let it finish, or write to another "
          "file and join them with `kvlab merge`",
          where);
    case SQLITE_FULL:
      return failed_precondition("{}: cannot write: the disk is full{}", where, os_text);
    case SQLITE_IOERR:
      return failed_precondition(
          "{}: cannot {}: disk error (is the disk full, or a file size limit reached?){}", where,
          action, os_text);
    case SQLITE_CORRUPT:
      return data_loss(
          "{}: the database is damaged ({}); restore a copy, or try sqlite3's .recover", where,
          sqlite3_errmsg(db_));
    default:
      return failed_precondition("{}: cannot {}: {}", where, action, sqlite3_errmsg(db_));
  }
}

absl::Status Database::execute(const std::string& sql) {
  const int code = sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : error(code, "write");
}

absl::StatusOr<Statement> Database::prepare(std::string_view sql) const {
  sqlite3_stmt* raw = nullptr;
  const int code = sqlite3_prepare_v2(db_, sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  if (code != SQLITE_OK) {
    return error(code, "prepare a statement");
  }
  return Statement(this, raw);
}

absl::StatusOr<Statement*> Database::cached(const std::string& sql) {
  auto it = cache_.find(sql);
  if (it == cache_.end()) {
    KVLAB_ASSIGN_OR_RETURN(Statement statement, prepare(sql));
    it = cache_.emplace(sql, std::make_unique<Statement>(std::move(statement))).first;
  }
  it->second->reset();
  return it->second.get();
}

absl::StatusOr<int64_t> Database::query_int(std::string_view sql) const {
  KVLAB_ASSIGN_OR_RETURN(Statement statement, prepare(sql));
  KVLAB_ASSIGN_OR_RETURN(const bool row, statement.step());
  if (!row) {
    return not_found("{}: no row for: {}", path_.string(), sql);
  }
  return statement.int64(0);
}

absl::Status Database::attach(const std::filesystem::path& path, const std::string& name) {
  absl::Status status;
  for (const char* query : {"mode=ro", "immutable=1"}) {
    if (!status.ok() && has_wal(path)) {
      break;
    }
    KVLAB_ASSIGN_OR_RETURN(Statement attach, prepare("ATTACH ? AS " + name));
    status = attach.bind(1, file_uri(path, query)).run();
    if (status.ok()) {
      status = query_int(fmt::format("SELECT count(*) FROM {}.sqlite_schema", name)).status();
      if (status.ok()) {
        return status;
      }
      (void)execute("DETACH " + name);
    }
  }
  return with_context(status, path.string());
}

int64_t Database::last_insert_id() const { return sqlite3_last_insert_rowid(db_); }
bool Database::in_transaction() const { return sqlite3_get_autocommit(db_) == 0; }

Statement::Statement(Statement&& other) noexcept
    : db_(other.db_),
      statement_(std::exchange(other.statement_, nullptr)),
      bind_error_(other.bind_error_) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  if (this != &other) {
    sqlite3_finalize(statement_);
    db_ = other.db_;
    statement_ = std::exchange(other.statement_, nullptr);
    bind_error_ = other.bind_error_;
  }
  return *this;
}

Statement::~Statement() { sqlite3_finalize(statement_); }

void Statement::note(int code) {
  if (code != SQLITE_OK && bind_error_ == SQLITE_OK) {
    bind_error_ = code;
  }
}

Statement& Statement::bind(int index, int64_t value) {
  note(sqlite3_bind_int64(statement_, index, value));
  return *this;
}

Statement& Statement::bind(int index, double value) {
  note(sqlite3_bind_double(statement_, index, value));
  return *this;
}

Statement& Statement::bind(int index, std::string_view text) {
  const std::string fixed = is_valid_utf8(text) ? std::string() : to_valid_utf8(text);
  const std::string_view valid = fixed.empty() ? text : std::string_view(fixed);
  // A null pointer would bind NULL.
  note(sqlite3_bind_text64(statement_, index, valid.data() != nullptr ? valid.data() : "",
                           valid.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind_blob(int index, std::string_view bytes) {
  note(sqlite3_bind_blob64(statement_, index, bytes.data() != nullptr ? bytes.data() : "",
                           bytes.size(), SQLITE_TRANSIENT));
  return *this;
}

Statement& Statement::bind_null(int index) {
  note(sqlite3_bind_null(statement_, index));
  return *this;
}

Statement& Statement::bind(int index, const std::optional<int64_t>& value) {
  return value ? bind(index, *value) : bind_null(index);
}

absl::StatusOr<bool> Statement::step() {
  if (bind_error_ != SQLITE_OK) {
    return db_->error(bind_error_, "bind a value");
  }
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) {
    return true;
  }
  if (code == SQLITE_DONE) {
    return false;
  }
  const absl::Status status =
      db_->error(code, sqlite3_stmt_readonly(statement_) != 0 ? "read" : "write");
  sqlite3_reset(statement_);
  return status;
}

absl::Status Statement::run() {
  const auto row = step();
  reset();
  return row.status();
}

void Statement::reset() {
  sqlite3_reset(statement_);
  sqlite3_clear_bindings(statement_);
  bind_error_ = SQLITE_OK;
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}
int64_t Statement::int64(int column) const { return sqlite3_column_int64(statement_, column); }
double Statement::real(int column) const { return sqlite3_column_double(statement_, column); }
std::string Statement::text(int column) const { return std::string(text_view(column)); }

std::string_view Statement::text_view(int column) const {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return text == nullptr ? std::string_view()
                         : std::string_view(
                               text, static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
}

std::string Statement::blob(int column) const {
  const auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_, column));
  return bytes == nullptr
             ? std::string()
             : std::string(bytes, static_cast<size_t>(sqlite3_column_bytes(statement_, column)));
}

std::optional<int64_t> Statement::optional_int64(int column) const {
  return is_null(column) ? std::nullopt : std::optional<int64_t>(int64(column));
}

absl::StatusOr<Transaction> Transaction::begin(Database& db) {
  KVLAB_RETURN_IF_ERROR(db.execute("BEGIN IMMEDIATE"));
  return Transaction(db);
}

Transaction::~Transaction() {
  // SQLite has rolled back by itself after some errors (disk full); a second one is harmless.
  if (db_ != nullptr && db_->in_transaction()) {
    (void)db_->execute("ROLLBACK");
  }
}

absl::Status Transaction::commit() {
  KVLAB_RETURN_IF_ERROR(db_->execute("COMMIT"));
  db_ = nullptr;
  return absl::OkStatus();
}

}  // namespace kvlab
