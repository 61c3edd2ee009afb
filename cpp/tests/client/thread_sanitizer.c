/* gRPC, Abseil and OpenSSL, as distributions build them, are not instrumented and synchronise in ways that
 * ThreadSanitizer cannot see. Their calls of memcpy and similar are not checked; the client itself is, everywhere. */
const char* __tsan_default_options(void) {
    return "ignore_noninstrumented_modules=1";
}
