#include "report.hpp"

#include <cstdio>
#include <nlohmann/json.hpp>

namespace examples {
namespace {

template <typename Rate>
std::string line(const std::string& label, const std::vector<HitRates>& rates, const Rate& rate) {
    char cell[32];
    std::snprintf(cell, sizeof cell, "%12s", label.c_str());
    std::string text = cell;
    for (const HitRates& each : rates) {
        std::snprintf(cell, sizeof cell, " %8.2f%%", rate(each));
        text += cell;
    }
    return text + "\n";
}

std::string learned_text(const LearnedReport& learned) {
    char text[400];
    std::snprintf(text, sizeof text,
                  "Version %llu. act: median %.2f us, p99 %.2f us. The guard let LRU decide %llu times, for %llu of "
                  "%llu evictions.\n",
                  static_cast<unsigned long long>(learned.version), learned.act_median, learned.act_p99,
                  static_cast<unsigned long long>(learned.guard_activations),
                  static_cast<unsigned long long>(learned.guarded_evictions),
                  static_cast<unsigned long long>(learned.evictions));
    return text;
}

}  // namespace

std::string table_header(const std::vector<HitRates>& rates) {
    char cell[32];
    std::snprintf(cell, sizeof cell, "%12s", "requests");
    std::string text = cell;
    for (const HitRates& each : rates) {
        std::snprintf(cell, sizeof cell, " %9s", each.name().c_str());
        text += cell;
    }
    return text + "\n";
}

std::string table_row(const std::vector<HitRates>& rates, std::size_t number, std::size_t requests) {
    return line(std::to_string(requests), rates, [&](const HitRates& each) { return each.block(number); });
}

std::string table_end(const CacheReport& report) {
    return line("second half", report.rates, [](const HitRates& each) { return each.second_half(); }) +
           line("all", report.rates, [](const HitRates& each) { return each.all(); }) +
           (report.learned ? learned_text(*report.learned) : "");
}

std::string report_json(const CacheReport& report) {
    nlohmann::ordered_json caches;
    for (const HitRates& each : report.rates) {
        std::vector<double> blocks;
        for (std::size_t number = 0; number < each.block_count(); ++number) {
            blocks.push_back(each.block(number));
        }
        caches[each.name()] = {{"all", each.all()}, {"second_half", each.second_half()}, {"blocks", blocks}};
    }
    nlohmann::ordered_json text{{"trace", report.trace},       {"requests", report.requests}, {"pages", report.pages},
                                {"capacity", report.capacity}, {"block", report.block},       {"hit_rates", caches}};
    if (report.learned) {
        text["learned"] = {{"version", report.learned->version},
                           {"evictions", report.learned->evictions},
                           {"guarded_evictions", report.learned->guarded_evictions},
                           {"guard_activations", report.learned->guard_activations},
                           {"act_median_us", report.learned->act_median},
                           {"act_p99_us", report.learned->act_p99}};
    }
    return text.dump(2) + "\n";
}

}  // namespace examples
