/// @file
/// Traces: the pages that a program requested, in order, read from a file or generated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <stdexcept>
#include <string>
#include <vector>

namespace examples {

/// A page, numbered from 0 in the order of first requests, so that tables of pages are plain arrays.
using Page = std::uint32_t;

struct Trace {
    std::string name;
    std::vector<Page> requests;
    /// How many different pages are requested.
    std::size_t page_count = 0;
};

/// A trace cannot be read; the message names the file, the line and the column.
class TraceError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

/// Read a trace in the format of the ARC paper (Megiddo and Modha, FAST 2003): one line for each request, with its
/// first page, its number of pages, and two numbers that are not used here.
/// @param path a file, plain or compressed with zstd, or `-` for the standard input.
/// @throws TraceError
Trace read_trace(const std::string& path);

/// The same, from a stream; `name` is the file that errors name.
Trace read_trace(std::istream& lines, const std::string& name);

/// What a generated trace is made of.
struct GeneratedTraceSpec {
    std::size_t requests = 1'000'000;
    std::size_t keys = 20'000;
    /// The key of rank r is requested with a probability proportional to 1 / r^skew.
    double skew = 0.9;
    /// After this many requests a popular key and any other swap their ranks.
    std::size_t drift = 5'000;
    /// After this many requests comes a scan of `scan_length` pages that are requested only once.
    std::size_t scan_every = 10'000;
    std::size_t scan_length = 2'000;
    std::uint64_t seed = 0;
};

/// A trace after Zipf's law with drifting popularity and scans. Equal specs give equal traces.
Trace generate_trace(const GeneratedTraceSpec& spec);

}  // namespace examples
