/* The facts that pixman finds on 64-bit Linux. */
#define PACKAGE "pixman"
#define SIZEOF_LONG 8
#define HAVE_PTHREADS 1
#define TLS __thread
#define HAVE_POSIX_MEMALIGN 1
#define HAVE_SIGACTION 1
#define HAVE_MMAP 1
#define HAVE_MPROTECT 1
#define HAVE_GETPAGESIZE 1
#define TOOLCHAIN_SUPPORTS_ATTRIBUTE_CONSTRUCTOR 1
#define HAVE_BUILTIN_CLZ 1
#define HAVE_GCC_VECTOR_EXTENSIONS 1
#if defined(__x86_64__)
#define USE_SSE2 1
#define USE_SSSE3 1
#endif
