#include <charconv>
#include <fstream>
#include <iostream>
#include <sstream>
#include <string_view>

#include "page_numbers.hpp"
#include "trace.hpp"
#include "zstd_text.hpp"

namespace examples {
namespace {

constexpr std::size_t columns = 4;
/// A larger count is a malformed line rather than a request.
constexpr std::uint64_t most_pages = 1'000'000;

/// Takes the numbers of one line apart; errors name the place.
class Line {
public:
    Line(const std::string& file, std::size_t number, std::string_view text)
        : file_(file), number_(number), text_(text) {}

    bool is_blank() const { return text_.find_first_not_of(blanks) == std::string_view::npos; }

    std::uint64_t next(const char* meaning) {
        skip_blanks();
        std::uint64_t value = 0;
        const char* const first = text_.data() + place_;
        const char* const last = text_.data() + text_.size();
        const auto [end, error] = std::from_chars(first, last, value);
        const bool ends_here = end == last || blanks.find(*end) != std::string_view::npos;
        if (error != std::errc() || !ends_here) {
            const std::string found = first == last ? "the end of the line" : "'" + word() + "'";
            fail("expected " + std::string(meaning) + " as a whole number of at most 20 digits, found " + found);
        }
        place_ = static_cast<std::size_t>(end - text_.data());
        return value;
    }

    void end() {
        skip_blanks();
        if (place_ < text_.size()) {
            fail("expected the end of the line after " + std::to_string(columns) + " numbers, found '" + word() + "'");
        }
    }

    [[noreturn]] void fail(const std::string& problem) const {
        throw TraceError(file_ + ":" + std::to_string(number_) + ":" + std::to_string(place_ + 1) + ": " + problem +
                         ". A line is: first page, number of pages, 0, request number.");
    }

private:
    static constexpr std::string_view blanks = " \t\r";

    void skip_blanks() { place_ = std::min(text_.find_first_not_of(blanks, place_), text_.size()); }

    std::string word() const {
        const std::string_view rest = text_.substr(place_);
        return std::string(rest.substr(0, std::min<std::size_t>(rest.find_first_of(blanks), 40)));
    }

    const std::string& file_;
    std::size_t number_;
    std::string_view text_;
    std::size_t place_ = 0;
};

}  // namespace

Trace read_trace(std::istream& lines, const std::string& name) {
    Trace trace{name, {}, 0};
    PageNumbers numbers;
    std::string text;
    for (std::size_t number = 1; std::getline(lines, text); ++number) {
        Line line(name, number, text);
        if (line.is_blank()) continue;
        const std::uint64_t first = line.next("the first page");
        const std::uint64_t pages = line.next("the number of pages");
        if (pages == 0 || pages > most_pages) {
            line.fail("the number of pages is " + std::to_string(pages) + "; expected 1 to " +
                      std::to_string(most_pages));
        }
        line.next("the third column");
        line.next("the request number");
        line.end();
        for (std::uint64_t page = 0; page < pages; ++page) {
            trace.requests.push_back(numbers.of(first + page));
        }
    }
    if (trace.requests.empty()) {
        throw TraceError(name + " has no requests. Is it a trace, and is it complete?");
    }
    trace.page_count = numbers.count();
    return trace;
}

Trace read_trace(const std::string& path) {
    if (path == "-") {
        return read_trace(std::cin, "standard input");
    }
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        throw TraceError("Cannot open the trace " + path + ". Name an existing file, or - for the standard input.");
    }
    if (!is_zstd(file)) {
        return read_trace(file, path);
    }
    std::istringstream text(zstd_text(file, path));
    return read_trace(text, path);
}

}  // namespace examples
