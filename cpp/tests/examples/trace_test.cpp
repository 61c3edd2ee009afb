#include "cache/trace.hpp"

#include <gtest/gtest.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

namespace examples {
namespace {

std::string problem_of(const std::string& text) {
    std::istringstream lines(text);
    try {
        read_trace(lines, "disk.lis");
    } catch (const TraceError& error) {
        return std::string(error.what()).substr(0, std::string(error.what()).find(". A line is"));
    }
    return "none";
}

std::string packed(const std::string& text) {
    std::string bytes(ZSTD_compressBound(text.size()), '\0');
    bytes.resize(ZSTD_compress(bytes.data(), bytes.size(), text.data(), text.size(), 3));
    return bytes;
}

/// A file that is removed with the object.
struct TemporaryFile {
    explicit TemporaryFile(const std::string& bytes)
        : path(std::filesystem::path(::testing::TempDir()) /
               ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
        std::ofstream(path, std::ios::binary) << bytes;
    }
    ~TemporaryFile() { std::filesystem::remove(path); }

    std::filesystem::path path;
};

TEST(Trace, ARequestOfSeveralPagesIsOneRequestForEach) {
    std::istringstream lines("70 2 0 0\n\n71 1 0 1\r\n5 1 0 2");
    const Trace trace = read_trace(lines, "disk.lis");
    EXPECT_EQ(trace.requests, (std::vector<Page>{0, 1, 1, 2}));
    EXPECT_EQ(trace.page_count, 3U);
}

TEST(Trace, AMalformedLineNamesFileLineAndColumn) {
    EXPECT_EQ(problem_of("1 1 0 0\n2 x 0 1\n"),
              "disk.lis:2:3: expected the number of pages as a whole number of at most 20 digits, found 'x'");
    EXPECT_EQ(problem_of("1 1 0\n"),
              "disk.lis:1:6: expected the request number as a whole number of at most 20 digits, found the end of the "
              "line");
    EXPECT_EQ(problem_of("1 1 0 0 9\n"), "disk.lis:1:9: expected the end of the line after 4 numbers, found '9'");
    EXPECT_EQ(problem_of("1 0 0 0\n"), "disk.lis:1:4: the number of pages is 0; expected 1 to 1000000");
}

TEST(Trace, NumbersThatAreNegativeBrokenOrTooLargeAreMalformed) {
    for (const char* const line : {"-1 1 0 0", "1.5 1 0 0", "99999999999999999999999 1 0 0", "1 2000000 0 0", "\xff"}) {
        EXPECT_EQ(problem_of(line).substr(0, 11), "disk.lis:1:") << line;
    }
}

TEST(Trace, AFileWithoutRequestsIsRefused) {
    EXPECT_EQ(problem_of("\n\n"), "disk.lis has no requests. Is it a trace, and is it complete?");
}

TEST(Trace, ACompressedFileIsReadLikeAPlainOne) {
    std::string text;
    for (int request = 0; request < 100'000; ++request) {
        text += std::to_string(request * 7919 % 5000) + " 1 0 " + std::to_string(request) + "\n";
    }
    const TemporaryFile file(packed(text));
    std::istringstream lines(text);
    EXPECT_EQ(read_trace(file.path.string()).requests, read_trace(lines, "plain").requests);
}

TEST(Trace, ACompressedFileThatIsCutShortIsRefused) {
    const std::string whole = packed(std::string(100'000, '\n') + "1 1 0 0\n");
    const TemporaryFile file(whole.substr(0, whole.size() - 4));
    EXPECT_THROW(read_trace(file.path.string()), TraceError);
}

TEST(Trace, AMissingFileIsNamed) {
    EXPECT_THROW(read_trace("/nowhere/trace.lis"), TraceError);
}

TEST(Trace, EqualSpecsGiveEqualTracesAndOtherSeedsOthers) {
    GeneratedTraceSpec spec;
    spec.requests = 5'000;
    const Trace once = generate_trace(spec);
    EXPECT_EQ(once.requests, generate_trace(spec).requests);
    spec.seed = 1;
    EXPECT_NE(once.requests, generate_trace(spec).requests);
}

TEST(Trace, PopularKeysOfAGeneratedTraceFollowZipfsLaw) {
    GeneratedTraceSpec spec{200'000, 100, 1.0, 0, 0, 0, 3};
    const Trace trace = generate_trace(spec);
    std::vector<double> counts(trace.page_count);
    for (const Page page : trace.requests) {
        counts[page] += 1.0;
    }
    std::sort(counts.rbegin(), counts.rend());
    // The harmonic number of 100 is 5.187: rank 1 has 1 / 5.187 of all requests, rank 2 half of that.
    EXPECT_NEAR(counts[0] / 200'000, 0.1928, 0.005);
    EXPECT_NEAR(counts[1] / 200'000, 0.0964, 0.005);
}

}  // namespace
}  // namespace examples
