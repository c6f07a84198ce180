#include "app/conversation.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "stages/common/options.hpp"

namespace flash::app {
namespace {

constexpr int kPatience = 180'000;  // [ms]: kernels may have to be compiled first

std::array<int, 2> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0)
    throw Refused(fmt::format("a pipe was to be made, but it can't be ({}); close some programs", strerror(errno)));
  return ends;
}

}  // namespace

Conversation::Conversation(const std::vector<std::string>& arguments) : complaints_(std::tmpfile(), std::fclose) {
  if (!complaints_)
    throw Refused(fmt::format("a temporary file was to be made, but it can't be ({}); free space in {}",
                              std::strerror(errno), P_tmpdir));
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const auto questions = make_pipe(), answers = make_pipe();
  posix_spawn_file_actions_t streams;
  posix_spawn_file_actions_init(&streams);
  posix_spawn_file_actions_adddup2(&streams, questions[0], STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&streams, answers[1], STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&streams, fileno(complaints_.get()), STDERR_FILENO);
  const bool started = posix_spawnp(&id_, argv[0], &streams, nullptr, argv.data(), environ) == 0;
  posix_spawn_file_actions_destroy(&streams);
  close(questions[0]), close(answers[1]);
  to_ = questions[1], from_ = answers[0];
  if (started) return;
  close(to_), close(from_);
  throw Refused(fmt::format("{} was to be started, but there is no such program; install it", arguments[0]));
}

Conversation::~Conversation() { end(); }

std::optional<std::string> Conversation::ask(const std::string& line) {
  const std::string question = line + "\n";
  if (to_ < 0 || write(to_, question.data(), question.size()) != static_cast<ssize_t>(question.size())) return {};
  for (;;) {
    if (const std::size_t at = heard_.find('\n'); at != std::string::npos) {
      std::string answer = heard_.substr(0, at);
      heard_.erase(0, at + 1);
      return answer;
    }
    pollfd waiting{from_, POLLIN, 0};
    const int ready = poll(&waiting, 1, kPatience);
    if (ready < 0 && errno == EINTR) continue;
    if (ready == 0) kill(id_, SIGKILL);  // read() below finds the end
    char block[4096];
    const ssize_t count = read(from_, block, sizeof block);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      end();
      return {};
    }
    heard_.append(block, static_cast<std::size_t>(count));
  }
}

std::string Conversation::last_words() const {
  std::string last, line;
  std::rewind(complaints_.get());
  for (int c = 0; (c = std::fgetc(complaints_.get())) != EOF;) {
    if (c != '\n') line += static_cast<char>(c);
    if (c == '\n' && !line.empty()) last = std::exchange(line, "");
  }
  return line.empty() ? last : line;
}

void Conversation::end() {
  if (to_ < 0) return;
  close(std::exchange(to_, -1));  // it reads the end of its input, and ends
  close(std::exchange(from_, -1));
  while (waitpid(id_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace flash::app
