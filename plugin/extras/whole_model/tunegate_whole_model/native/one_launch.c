/* All threads run the whole model, each its STEPS: pieces of parts, and barriers between stages. */
static int run_part(model* instance, const step* at) {
  for (int i = PIECES[at->part].begin; i < PIECES[at->part].end; ++i)
    if (call(instance, PIECE_CALLS[i], at->first, at->stop)) return -1;
  return 0;
}

/* The last to arrive lets all others pass. Who waits for long lets others have its core. */
static void barrier(void) {
  int passed = atomic_load(&pool.passed);
  if (atomic_fetch_add(&pool.arrived, 1) + 1 == THREADS) {
    atomic_store(&pool.arrived, 0);
    atomic_fetch_add(&pool.passed, 1);
    return;
  }
  for (int spin = 0; atomic_load(&pool.passed) == passed; ++spin) {
    if (spin < SPINS) breathe();
    else sched_yield();
  }
}

/* One that fails goes on to the barriers: the others wait for it there. */
static int run_steps(int me, environment* together, void* data) {
  int wrong = 0;
  if (together->sync) {
    for (int i = STEP_BEGINS[me]; i < STEP_BEGINS[me + 1]; ++i) {
      if (STEPS[i].part == BARRIER) barrier();
      else if (!wrong) wrong = run_part(data, &STEPS[i]);
    }
    return wrong;
  }
  if (me) return 0; /* the first does all, stage by stage */
  int at[THREADS], going = 1;
  memcpy(at, STEP_BEGINS, sizeof at);
  while (going && !wrong) {
    going = 0;
    for (int each = 0; each < THREADS && !wrong; ++each) {
      for (; at[each] < STEP_BEGINS[each + 1] && STEPS[at[each]].part != BARRIER && !wrong; ++at[each])
        wrong = run_part(data, &STEPS[at[each]]);
      if (at[each] < STEP_BEGINS[each + 1]) going = 1, ++at[each];
    }
  }
  return wrong;
}

static int compute(model* instance) { return launch(run_steps, instance, THREADS); }
