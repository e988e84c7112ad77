// All blocks of the launch wait here for each other. The highest bit of the word turns over when
// the last has come: block 0 adds what the others leave to 2^31, so that the lower bits are what
// they were, and nobody has to reset anything. What a block wrote before is seen by all after: its
// threads meet, one of them fences and adds; on the other side one sees the bit, fences, and meets
// the others of its block.
static __device__ unsigned int tunegate_word;

// Ten seconds at 1 GHz: who waits longer ends the kernel with an error, and no fault hangs it.
#ifndef TUNEGATE_MOST_CYCLES
#define TUNEGATE_MOST_CYCLES 10000000000ll
#endif

static __device__ void tunegate_barrier() {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned int own = blockIdx.x == 0 ? 0x80000000u - (gridDim.x - 1u) : 1u;
    __threadfence();
    const unsigned int before = atomicAdd(&tunegate_word, own);
    const long long begun = clock64();
    while (((before ^ *(volatile unsigned int*)&tunegate_word) & 0x80000000u) == 0u)
      if (clock64() - begun > TUNEGATE_MOST_CYCLES) __trap();
    __threadfence();
  }
  __syncthreads();
}

// The first of the block's threads, that many, wait for each other.
static __device__ void tunegate_wait(unsigned int threads) {
  if (threads <= 32u)
    __syncwarp(threads == 32u ? 0xffffffffu : (1u << threads) - 1u);
  else
    __barrier_sync_count(1u, threads);
}

// The first share of this block, of a part that begins where those before it in the stage end.
static __device__ unsigned int tunegate_first(unsigned int begin) {
  return (blockIdx.x + gridDim.x - begin % gridDim.x) % gridDim.x;
}
