#include "zstd_text.hpp"

#include <zstd.h>

#include <array>
#include <istream>
#include <memory>
#include <vector>

#include "trace.hpp"

namespace examples {

bool is_zstd(std::istream& file) {
    std::array<char, 4> found{};
    const std::istream::pos_type place = file.tellg();
    file.read(found.data(), found.size());
    file.clear();
    file.seekg(place);
    return found == std::array<char, 4>{'\x28', '\xB5', '\x2F', '\xFD'};
}

std::string zstd_text(std::istream& file, const std::string& name) {
    const std::unique_ptr<ZSTD_DCtx, decltype(&ZSTD_freeDCtx)> context(ZSTD_createDCtx(), &ZSTD_freeDCtx);
    std::vector<char> packed(ZSTD_DStreamInSize());
    std::vector<char> unpacked(ZSTD_DStreamOutSize());
    std::string text;
    std::size_t missing = 1;
    while (file.read(packed.data(), static_cast<std::streamsize>(packed.size())), file.gcount() > 0) {
        ZSTD_inBuffer in{packed.data(), static_cast<std::size_t>(file.gcount()), 0};
        while (in.pos < in.size) {
            ZSTD_outBuffer out{unpacked.data(), unpacked.size(), 0};
            missing = ZSTD_decompressStream(context.get(), &out, &in);
            if (ZSTD_isError(missing) != 0U) {
                throw TraceError(name + " is damaged: " + ZSTD_getErrorName(missing) + ". Fetch it again.");
            }
            text.append(unpacked.data(), out.pos);
        }
    }
    if (missing != 0) {
        throw TraceError(name + " ends in the middle of its compressed data. Fetch it again.");
    }
    return text;
}

}  // namespace examples
