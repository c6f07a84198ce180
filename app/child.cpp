#include "app/child.hpp"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "stages/common/options.hpp"

namespace flash::app {

namespace {

/// A file without a name, gone when closed. Files in place of pipes: nobody waits for a reader.
class TemporaryFile {
 public:
  TemporaryFile() : file_(std::tmpfile(), std::fclose) {
    if (!file_) complain();
  }

  int descriptor() const { return fileno(file_.get()); }

  void write(std::string_view text) {
    if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size() || std::fflush(file_.get()) != 0)
      complain();
    std::rewind(file_.get());
  }

  std::string read() {
    std::string text;
    char block[4096];
    std::rewind(file_.get());
    while (const std::size_t n = std::fread(block, 1, sizeof block, file_.get())) text.append(block, n);
    return text;
  }

 private:
  [[noreturn]] static void complain() {
    throw Refused(fmt::format("a temporary file was to be made, but it can't be ({}); free space in {}",
                              std::strerror(errno), P_tmpdir));
  }

  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

}  // namespace

Child run_child(const std::vector<std::string>& arguments, std::string_view input) {
  TemporaryFile in, out, err;
  in.write(input);
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);

  posix_spawn_file_actions_t streams;
  posix_spawn_file_actions_init(&streams);
  posix_spawn_file_actions_adddup2(&streams, in.descriptor(), STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&streams, out.descriptor(), STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&streams, err.descriptor(), STDERR_FILENO);
  pid_t id = 0;
  const bool started = posix_spawnp(&id, argv[0], &streams, nullptr, argv.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&streams);
  if (!started) return {};

  int status = 0;
  while (waitpid(id, &status, 0) < 0 && errno == EINTR) {
  }
  return {true, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), out.read(), err.read()};
}

}  // namespace flash::app
