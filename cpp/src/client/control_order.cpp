#include "client/control_order.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "client/json.hpp"
#include "records/errors.hpp"
#include "records/files.hpp"
#include "rl4sys/log.hpp"

namespace rl4sys::client {
namespace {

std::string name_of(ControlMode mode) {
    return mode == ControlMode::Follow ? "follow" : mode == ControlMode::Frozen ? "frozen" : "off";
}

ControlMode mode_of(const std::string& name) {
    for (const ControlMode mode : {ControlMode::Follow, ControlMode::Frozen, ControlMode::Off}) {
        if (name_of(mode) == name) {
            return mode;
        }
    }
    throw std::runtime_error("'" + name + "' is not a mode");
}

ControlOrder parsed(std::ifstream& file) {
    std::ostringstream contents;
    contents << file.rdbuf();
    const Json raw = Json::parse(contents.str());
    return {mode_of(raw.at("mode").get<std::string>()), raw.at("sequence").get<std::uint64_t>(),
            raw.at("reason").get<std::string>(), raw.at("ordered_by").get<std::string>()};
}

}  // namespace

ControlOrder ControlOrder::from_message(const wire::Control& message) {
    constexpr int unspecified = 0;
    ControlMode mode = ControlMode::Off;
    if (message.mode == unspecified || message.mode == static_cast<int>(ControlMode::Follow)) {
        mode = ControlMode::Follow;
    } else if (message.mode == static_cast<int>(ControlMode::Frozen)) {
        mode = ControlMode::Frozen;
    }
    return {mode, message.sequence, message.reason, message.ordered_by};
}

std::string ControlOrder::text() const {
    const std::string by = ordered_by.empty() ? "" : " by " + ordered_by;
    return name_of(mode) + by + (reason.empty() ? "" : ": " + reason);
}

ControlFile::ControlFile(const std::filesystem::path& directory, const std::string& name)
    : path_(directory / (name + ".control")) {}

ControlOrder ControlFile::load() {
    const std::lock_guard lock(mutex_);
    try {
        std::ifstream file(path_, std::ios::binary);
        if (!file) {
            if (errno == ENOENT) {
                return {};
            }
            throw std::runtime_error(std::strerror(errno));
        }
        ControlOrder order = parsed(file);
        saved_ = order.sequence;
        return order;
    } catch (const std::exception& error) {
        log(LogLevel::Error, "The operator's order in " + path_.string() + " cannot be read: " + error.what() +
                                 ". The policy stays off until the server repeats its order; delete the file if there "
                                 "was none.");
        return {ControlMode::Off, 0, path_.string() + " cannot be read", ""};
    }
}

void ControlFile::save(const ControlOrder& order) {
    const Json contents{{"mode", name_of(order.mode)},
                        {"sequence", order.sequence},
                        {"reason", order.reason},
                        {"ordered_by", order.ordered_by}};
    const std::lock_guard lock(mutex_);
    if (order.sequence <= saved_) {
        return;
    }
    try {
        records::replace_file(path_, contents.dump(-1, ' ', false, Json::error_handler_t::replace));
        saved_ = order.sequence;
    } catch (const records::FileError& error) {
        log(LogLevel::Warning, "The operator's order cannot be kept in " + path_.string() + ": " + error.what() + ".");
    }
}

}  // namespace rl4sys::client
