/* VECTORED compiles a function for processors with wide vectors, too: the one that runs it chooses.
 * No sum changes its order, so the numbers are equal to the bit. */
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__has_attribute)
#if __has_attribute(target_clones)
#define VECTORED __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#endif
#ifndef VECTORED
#define VECTORED
#endif
