#include "wire/segment_packs.hpp"

#include <rl4sys/v1/experience.pb.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>

#include "wire/segment_columns.hpp"

namespace rl4sys::wire {
namespace {

/// One entry for each segment, little-endian; one alone where all are equal.
template <typename Number>
std::string header_bytes(const std::vector<Number>& entries) {
    const bool alike = std::equal(entries.begin() + 1, entries.end(), entries.begin());
    const std::size_t count = alike ? 1 : entries.size();
    std::string bytes;
    bytes.reserve(count * sizeof(Number));
    for (std::size_t at = 0; at < count; ++at) {
        for (std::size_t byte = 0; byte < sizeof(Number); ++byte) {
            bytes += static_cast<char>(static_cast<std::uint64_t>(entries[at]) >> (8 * byte));
        }
    }
    return bytes;
}

template <typename Number, typename Get>
std::string header_of(const std::vector<SegmentView>& segments, Get get) {
    std::vector<Number> entries;
    entries.reserve(segments.size());
    for (const SegmentView& segment : segments) {
        entries.push_back(static_cast<Number>(get(segment)));
    }
    return header_bytes(entries);
}

/// One column of all segments.
template <typename Get>
std::string joined(const std::vector<SegmentView>& segments, Get get) {
    std::string column;
    for (const SegmentView& segment : segments) {
        const std::string_view part = get(segment);
        column.append(part.data(), part.size());
    }
    return column;
}

[[noreturn]] void not_a_pack(const std::string& problem) {
    throw ContractViolation("Bytes of an outbox are not a pack of segments: " + problem + ".");
}

/// A header array, read back.
class Entries {
public:
    Entries(const std::string& bytes, std::size_t width, std::uint32_t count) : bytes_(bytes), width_(width) {
        if (bytes.size() != width && bytes.size() != count * width) {
            not_a_pack("a header has " + std::to_string(bytes.size()) + " bytes");
        }
    }

    std::uint64_t operator[](std::size_t at) const {
        const std::size_t begin = bytes_.size() == width_ ? 0 : at * width_;
        std::uint64_t value = 0;
        for (std::size_t byte = 0; byte < width_; ++byte) {
            value |= std::uint64_t{static_cast<unsigned char>(bytes_[begin + byte])} << (8 * byte);
        }
        return value;
    }

private:
    const std::string& bytes_;
    std::size_t width_;
};

/// An array of which only the number of rows is known.
class Rows {
public:
    Rows(const std::string& bytes, std::uint64_t rows) : bytes_(&bytes), width_(bytes.size() / rows) {
        if (bytes.size() % rows != 0) {
            not_a_pack("an array has " + std::to_string(bytes.size()) + " bytes for " + std::to_string(rows) + " rows");
        }
    }

    std::string cut(std::uint64_t first, std::uint64_t last) const {
        return bytes_->substr(first * width_, (last - first) * width_);
    }

private:
    const std::string* bytes_;
    std::size_t width_;
};

template <typename Parts>
std::vector<Rows> rows_of(const Parts& parts, std::uint64_t rows) {
    std::vector<Rows> made;
    for (const std::string& part : parts) {
        made.emplace_back(part, rows);
    }
    return made;
}

}  // namespace

bool can_share_pack(const SegmentView& one, const SegmentView& other) {
    return one.agent == other.agent && one.policy_version == other.policy_version &&
           one.decided_by_fallback == other.decided_by_fallback &&
           one.decided_by_incumbent == other.decided_by_incumbent && one.elapsed.empty() == other.elapsed.empty();
}

std::string encode_pack(const SegmentFormat& form, const std::vector<SegmentView>& segments) {
    const SegmentView& first = segments.front();
    for (const SegmentView& segment : segments) {
        require_columns(form, segment);
    }
    v1::SegmentPack message;
    message.set_agent(first.agent.data(), first.agent.size());
    message.set_policy_version(first.policy_version);
    if (first.decided_by_fallback) {
        message.set_decided_by(v1::DECIDED_BY_FALLBACK);
    } else if (first.decided_by_incumbent) {
        message.set_decided_by(v1::DECIDED_BY_INCUMBENT);
    }
    message.set_lane(header_of<std::uint64_t>(segments, [](const SegmentView& each) { return each.lane; }));
    message.set_episode(header_of<std::uint64_t>(segments, [](const SegmentView& each) { return each.episode; }));
    message.set_start(header_of<std::uint64_t>(segments, [](const SegmentView& each) { return each.start; }));
    message.set_ending(
        header_of<std::uint8_t>(segments, [](const SegmentView& each) { return ending_of(each.ending); }));
    message.set_steps(header_of<std::uint32_t>(segments, [](const SegmentView& each) { return each.steps; }));
    for (std::size_t place = 0; place < form.observation.size(); ++place) {
        message.add_observation(joined(segments, [place](const SegmentView& each) { return each.observation[place]; }));
    }
    message.set_action(sent_action(form, joined(segments, [](const SegmentView& each) { return each.action; })));
    message.set_reward(joined(segments, [](const SegmentView& each) { return each.reward; }));
    for (std::size_t place = 0; place < form.extras.size(); ++place) {
        message.add_extras(joined(segments, [place](const SegmentView& each) { return each.extras[place]; }));
    }
    for (std::size_t place = 0; place < form.carry.size(); ++place) {
        message.add_carry(joined(segments, [place](const SegmentView& each) { return each.carry[place]; }));
    }
    message.set_elapsed(joined(segments, [](const SegmentView& each) { return each.elapsed; }));
    return message.SerializeAsString();
}

std::vector<std::string> split_pack(std::string_view pack, std::uint32_t count) {
    v1::SegmentPack message;
    if (count == 0 || !message.ParseFromArray(pack.data(), static_cast<int>(pack.size()))) {
        not_a_pack("they cannot be read");
    }
    const Entries lane(message.lane(), 8, count);
    const Entries episode(message.episode(), 8, count);
    const Entries start(message.start(), 8, count);
    const Entries ending(message.ending(), 1, count);
    const Entries steps(message.steps(), 4, count);
    std::uint64_t total = 0;
    for (std::uint32_t number = 0; number < count; ++number) {
        if (steps[number] == 0) {
            not_a_pack("a segment has no steps");
        }
        total += steps[number];
    }
    const std::vector<Rows> observation = rows_of(message.observation(), total + count);
    std::vector<Rows> taken{Rows(message.action(), total), Rows(message.reward(), total)};
    for (const Rows& extra : rows_of(message.extras(), total)) {
        taken.push_back(extra);
    }
    const std::vector<Rows> carry = rows_of(message.carry(), count);
    const Rows elapsed(message.elapsed(), total);
    std::vector<std::string> alone;
    alone.reserve(count);
    std::uint64_t begin = 0;
    for (std::uint32_t number = 0; number < count; ++number) {
        const std::uint64_t end = begin + steps[number];
        v1::Segment segment;
        segment.set_agent(message.agent());
        segment.set_lane(lane[number]);
        segment.set_episode(episode[number]);
        segment.set_start(start[number]);
        segment.set_policy_version(message.policy_version());
        segment.set_ending(static_cast<v1::Ending>(ending[number]));
        segment.set_steps(static_cast<std::uint32_t>(end - begin));
        segment.set_decided_by(message.decided_by());
        for (const Rows& rows : observation) {
            segment.add_columns(rows.cut(begin + number, end + number + 1));
        }
        for (const Rows& rows : taken) {
            segment.add_columns(rows.cut(begin, end));
        }
        for (const Rows& rows : carry) {
            segment.add_columns(rows.cut(number, number + 1));
        }
        segment.set_elapsed(elapsed.cut(begin, end));
        alone.push_back(segment.SerializeAsString());
        begin = end;
    }
    return alone;
}

}  // namespace rl4sys::wire
