// All that a C++ program has to be undetermined by: the order of an unordered_map, addresses out of malloc, qsort with a
// callback, exceptions that are none, floats that are infinite or not a number. A record becomes the list of its words.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <unordered_map>
#include <vector>

extern "C" {
#include "wasmill_abi.h"
}

namespace {

struct Word {
    const std::string *text;
    double weight;
};

int by_weight(const void *a, const void *b) {
    double x = static_cast<const Word *>(a)->weight, y = static_cast<const Word *>(b)->weight;
    return x < y ? -1 : x > y;
}

alignas(16) char arena[(512 << 10) + 16];
std::vector<wm_record> pending;
std::vector<std::string> texts;

std::string describe(const char *p, size_t n) {
    std::unordered_map<std::string, double> words;
    std::string word;
    for (size_t i = 0; i <= n; i++) {
        if (i < n && isalnum(static_cast<unsigned char>(p[i]))) {
            word += p[i];
            continue;
        }
        double &x = words[word];
        x = std::sqrt(x * 1.7 + static_cast<double>(i)) / (static_cast<double>(word.size()) - 4.0);
        word.clear();
    }
    auto *sorted = static_cast<Word *>(malloc(words.size() * sizeof(Word)));
    size_t m = 0;
    for (const auto &[text, weight] : words) sorted[m++] = {&text, weight};
    qsort(sorted, m, sizeof *sorted, by_weight);
    std::string out;
    for (size_t i = 0; i < m; i++) {
        char number[96];
        uint64_t bits;
        double log = std::log(sorted[i].weight);
        memcpy(&bits, &log, 8);
        snprintf(number, sizeof number, "=%.6g/%016llx ", sorted[i].weight, static_cast<unsigned long long>(bits));
        out += *sorted[i].text + number;
    }
    char where[32];
    snprintf(where, sizeof where, "at %p", static_cast<void *>(sorted));
    free(sorted);
    return out + where;
}

} // namespace

WM_EXPORT("wasmill_alloc") extern "C" void *guest_alloc(uint32_t n) { return n <= sizeof arena ? arena : nullptr; }

WM_EXPORT("wasmill_init") extern "C" int guest_init(const char *, uint32_t, uint32_t) {
    pending.reserve(1024);
    texts.reserve(1024);
    return 0;
}

WM_EXPORT("wasmill_batch") extern "C" int guest_batch(wm_frame *frame, uint32_t) {
    pending.clear();
    texts.clear();
    uint32_t at = frame->records;
    for (uint32_t i = 0; i < frame->count; i++, at += frame->stride) {
        const auto *r = reinterpret_cast<const wm_record *>(static_cast<uintptr_t>(at));
        texts.push_back(describe(reinterpret_cast<const char *>(static_cast<uintptr_t>(r->value)), static_cast<size_t>(r->value_len)));
        pending.push_back(*r);
        pending.back().value = static_cast<uint32_t>(reinterpret_cast<uintptr_t>(texts.back().data()));
        pending.back().value_len = static_cast<int32_t>(texts.back().size());
    }
    wm_host_emit(pending.data(), frame->count, sizeof(wm_record));
    return 0;
}
