/* Cutovers that cross takeovers, failovers with loss on both sides, and sides that are down (findings C1, C2, C7, H2,
 * H3): two sides of one or two partitions of one unit each, a writer with any route, workers that are killed at any
 * step or sleep and go on, and failovers: a place (a side's partition, which is a host) goes back to the state of any
 * earlier moment, with data, log, state and epoch, and has another boot. The copy of a unit is two steps here; its
 * finer ones are in migration.pml. A unit's content is the set of the writes that it has.
 *
 * Promises: at most one side accepts writes of a partition. Who serves has all acknowledged writes but those that a
 * failover of the truth lost, or failovers of both sides in one cutover. What a copy has of acknowledged writes is not
 * taken from it once the target has served, unless an operator chose the truth that has lost memory. Who waits for a
 * side that is down holds nobody's writes, where they can be let go.
 *
 * Mutants:
 *   NO_IDENTITY          a side that failed over accepts what its state of an earlier moment says (C7)
 *   BOOT_REPEATS         a boot is the server's name, which comes back, and not one of its starts
 *   FENCE_WITHOUT_BOOT   changes name the epoch, and not the boot that the worker saw when it raised it
 *   REPAIR_FROM_LOSSY    in REVERSIBLE the copy is repaired from a truth that lost memory (C2)
 *   DRAIN_UNSEEN         list and read do not look at the boot of the truth (C2, by the drain)
 *   DRAIN_LOSSY_SOURCE   going forward, what a source that lost memory has in its log is copied first
 *   FORWARD_UNREPAIRED   going forward, a target partition that lost memory before it served is opened as it is
 *   SERVING_OF_BEFORE    "the target serves" is believed of a state that is older than this cutover
 *   BACK_OUT_UNRECORDED  a back-out from moved does not retire the cutover's number in the record first
 *   UNFREEZE_UNSEEN      a frozen truth is let go before the other side is looked at, though it failed over
 *   BOTH_SIDES_FIRST     a takeover looks at both sides before anything else (H2)
 *   NO_REFREEZE          a takeover finds some of the source moved and drains while the others serve (H3)
 *
 * All of this at once (two partitions, two failovers, two cutovers, two workers, a side down) is too large. `run` has
 * instances that cross a few of them each: workers that are killed with everything, sleeping ones with one failover of
 * one partition, or two partitions with a side down, two failovers with one partition; the larger ones are for soak.
 */
#ifndef PARTS
#define PARTS 1
#endif
#ifndef WRITES
#define WRITES 1
#endif
#ifndef FAILOVERS
#define FAILOVERS 1
#endif
#ifndef EPOCHS
#define EPOCHS 3
#endif
#ifndef CUTS
#define CUTS 1
#endif
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef DOWNS
#define DOWNS 0
#endif
#define PLACES (2 * PARTS)

/* EndpointState */
#define IMPORTING 1
#define SERVING 2
#define FROZEN 3
#define MOVED 4

#define AT(side, part) ((side) * PARTS + (part))

byte state[PLACES];
byte data[PLACES];   /* a bit for each write that is there */
byte dirty[PLACES];  /* a bit for each write with an entry in the log */
byte epoch[PLACES];
byte boot[PLACES];   /* of the server */
byte ident[PLACES];  /* the boot that the state was written at */

byte since[PLACES];  /* the turn that the state was entered in */

/* The record, in the catalog's store. */
byte record_by;
bool on_target;
bool cutting;        /* phase cutover */
bool cut;            /* one was begun, ever: from then on a side that lost memory is no source of repairs */
byte verified[PLACES];
bool over;           /* cancelled */

byte epochs;
byte cuts;
byte turn;           /* in the record: a number for each cutover, and for each back-out from moved */
byte gone;           /* a side that is down, plus one */
byte acked[PARTS];
byte kept[PARTS];    /* of those, what no failover of the truth has lost */
byte owner[PARTS];   /* which side accepted, or was opened, last */
bool served[2];

#ifdef NO_IDENTITY
#define ACCEPTS(side, part) (state[AT(side, part)] == SERVING)
#else
#define ACCEPTS(side, part) (state[AT(side, part)] == SERVING && ident[AT(side, part)] == boot[AT(side, part)])
#endif

#ifdef SERVING_OF_BEFORE
#define OPENED(side, part) (state[AT(side, part)] == SERVING)
#else
#define OPENED(side, part) (state[AT(side, part)] == SERVING && since[AT(side, part)] == turn)
#endif

#if PARTS == 1
#define ANY_OPENED(side) OPENED(side, 0)
#define ANY(side, what) (state[AT(side, 0)] == what)
#define SAME(side) (seen[AT(side, 0)] == verified[AT(side, 0)])
#define STILL(side) (boot[AT(side, 0)] == verified[AT(side, 0)])
#else
#define ANY_OPENED(side) (OPENED(side, 0) || OPENED(side, 1))
#define ANY(side, what) (state[AT(side, 0)] == what || state[AT(side, 1)] == what)
#define SAME(side) (seen[AT(side, 0)] == verified[AT(side, 0)] && seen[AT(side, 1)] == verified[AT(side, 1)])
#define STILL(side) (boot[AT(side, 0)] == verified[AT(side, 0)] && boot[AT(side, 1)] == verified[AT(side, 1)])
#endif

inline accept(side, part) {
  assert(! ACCEPTS(1 - (side), part)); /* two sides accept */
  assert((kept[part] & ~data[AT(side, part)]) == 0); /* lost */
  data[AT(side, part)] = data[AT(side, part)] | bits;
  dirty[AT(side, part)] = dirty[AT(side, part)] | bits;
  acked[part] = acked[part] | bits;
  kept[part] = kept[part] | bits
}

proctype Writer() {
  byte left = WRITES, bits = 2;
end:
  do
  :: left > 0 -> atomic {
       if
#if PARTS == 2
       :: ACCEPTS(0, 1) -> accept(0, 1)
       :: ACCEPTS(1, 1) -> accept(1, 1)
#endif
       :: ACCEPTS(0, 0) -> accept(0, 0)
       :: ACCEPTS(1, 0) -> accept(1, 0)
       fi;
       bits = bits << 1;
       left--
     }
  :: left == 0 -> break
  od
}

/* Whoever serves has all that no failover of the truth has lost, and serves alone. */
proctype Reader() {
end:
  do
  :: atomic { ACCEPTS(0, 0) -> assert(! ACCEPTS(1, 0)); assert((kept[0] & ~data[AT(0, 0)]) == 0) }
  :: atomic { ACCEPTS(1, 0) -> assert(! ACCEPTS(0, 0)); assert((kept[0] & ~data[AT(1, 0)]) == 0) }
#if PARTS == 2
  :: atomic { ACCEPTS(0, 1) -> assert(! ACCEPTS(1, 1)); assert((kept[1] & ~data[AT(0, 1)]) == 0) }
  :: atomic { ACCEPTS(1, 1) -> assert(! ACCEPTS(0, 1)); assert((kept[1] & ~data[AT(1, 1)]) == 0) }
#endif
  od
}

#ifdef FENCE_WITHOUT_BOOT
#define FENCED(x) (epoch[x] == by)
#define OTHER_BOOT(x) false
#else
#define FENCED(x) (epoch[x] == by && boot[x] == seen[x])
#define OTHER_BOOT(x) (boot[x] != seen[x])
#endif

inline enter(side, part, to) {
  atomic {
    if
    :: gone == (side) + 1 -> goto lost
    :: else
    fi;
    if
    :: OTHER_BOOT(AT(side, part)) -> goto lost
    :: else
    fi;
    if
    :: epoch[AT(side, part)] != by -> goto lost
    :: else
    fi;
    state[AT(side, part)] = to;
    ident[AT(side, part)] = boot[AT(side, part)];
    since[AT(side, part)] = turn;
    if
    :: to == SERVING -> owner[part] = side; served[side] = true
    :: else
    fi;
    if
    :: true
    :: goto lost /* its answer, or the worker is killed here */
    fi
  }
}

inline save() {
  if
  :: record_by != by -> goto stop
  :: else
  fi
}

/* Copies a partition, as of now: list and read; replace and remove (which are two calls, of which migration.pml has more). */
inline copy(part) {
  atomic {
    if
    :: gone == t + 1 -> goto lost
    :: else
    fi;
    if
#ifdef DRAIN_UNSEEN
    :: false -> goto lost
#else
    :: boot[AT(t, part)] != seen[AT(t, part)] -> goto lost
#endif
    :: else
    fi;
    ids = dirty[AT(t, part)];
    content = data[AT(t, part)]
  }
  atomic {
    if
    :: gone == c + 1 || ! FENCED(AT(c, part)) -> goto lost
    :: else
    fi;
    if
    :: state[AT(c, part)] != IMPORTING && state[AT(c, part)] != MOVED -> goto lost
    :: else
    fi;
    /* What the copy has of acknowledged writes is not taken from it, unless somebody chose so. */
    assert(chosen || ! served[1] || (data[AT(c, part)] & acked[part] & ~content) == 0);
    acked[part] = acked[part] & ~(data[AT(c, part)] & ~content & ~data[AT(t, part)]); /* given up */
    data[AT(c, part)] = content;
    content = 0;
    if
    :: gone == t + 1 || ! FENCED(AT(t, part)) -> goto lost
    :: else
    fi;
    dirty[AT(t, part)] = dirty[AT(t, part)] & ~ids;
    ids = 0
  }
}

inline raise(side, part) {
  atomic {
    if
    :: epoch[AT(side, part)] > by -> goto stop
    :: else
    fi;
    epoch[AT(side, part)] = by;
    seen[AT(side, part)] = boot[AT(side, part)]
  }
}

#define EACH p = 0; do :: p < PARTS ->
#define DONE ; p++ :: else -> p = 0; break od

proctype Worker() {
  byte by, p, t, c, content, ids;
  byte seen[PLACES];
  bool chosen;

takeover:
  atomic {
    chosen = false; content = 0; ids = 0; p = 0;
    EACH seen[AT(0, p)] = 0; seen[AT(1, p)] = 0 DONE;
    if
    :: over || epochs == EPOCHS -> goto stop
    :: else
    fi;
    epochs++;
    by = epochs;
    record_by = by;
    t = on_target;
    c = 1 - t
  }
  EACH
    gone != t + 1;
    raise(t, p)
  DONE;
#ifndef BOTH_SIDES_FIRST
  if
#ifdef UNFREEZE_UNSEEN
  :: cutting && ANY(t, FROZEN) && ! ANY(t, MOVED) ->
#else
  :: cutting && ANY(t, FROZEN) && ! ANY(t, MOVED) && SAME(t) ->
#endif
    EACH enter(t, p, SERVING) DONE;
    atomic { save(); cutting = false }
  :: else
  fi;
#endif
  EACH
    if
    :: gone != c + 1
    :: gone == c + 1 ->
       /* Whoever waits here holds nobody's writes, where he could know that. */
       atomic {
         record_by == by && epoch[AT(t, 0)] == by && epoch[AT(t, PARTS - 1)] == by && STILL(t) ->
         assert(! ANY(t, FROZEN) || ANY(t, MOVED))
       }
       if
       :: gone != c + 1
       :: ! cutting && t == 0 -> goto cancel
       fi
    fi;
    raise(c, p)
  DONE;
  if
  :: cutting -> goto cutover
  :: else
  fi;

resting:
  EACH
    if
    :: seen[AT(c, p)] != verified[AT(c, p)] ->
       if
       :: cut -> enter(c, p, MOVED)
       :: else -> enter(c, p, IMPORTING)
       fi
    :: else
    fi
  DONE;
  if
  :: ! SAME(t) ->
     EACH
       if
       :: seen[AT(t, p)] != verified[AT(t, p)] -> enter(t, p, SERVING)
       :: else
       fi
     DONE;
#ifndef REPAIR_FROM_LOSSY
     if
     :: cut ->
        EACH
          if
          :: chosen
          :: ! chosen && data[AT(t, p)] == data[AT(c, p)]
          :: ! chosen && data[AT(t, p)] != data[AT(c, p)] ->
             if
             :: goto stop          /* until somebody chooses */
             :: chosen = true
             fi
          fi
        DONE
     :: else
     fi
#endif
  :: else
  fi;
  if
  :: ! SAME(t) || ! SAME(c) ->
     EACH copy(p) DONE;
     atomic {
       save();
       EACH verified[AT(0, p)] = seen[AT(0, p)]; verified[AT(1, p)] = seen[AT(1, p)] DONE;
       chosen = false
     }
  :: else
  fi;
  do
#if PARTS == 2
  :: dirty[AT(t, 1)] != 0 -> copy(1)
#endif
  :: dirty[AT(t, 0)] != 0 -> copy(0)
  :: goto lost /* a call fails, or a worker takes over */
  :: cuts < CUTS -> atomic { save(); cuts++; turn++; cutting = true; cut = true }; break
  od;

cutover:
  if
  :: ANY_OPENED(c) -> goto forward
  :: else
  fi;
  if
  :: ! SAME(t) || ! SAME(c) -> goto backout
  :: else
  fi;
  if
  :: ANY(t, MOVED) ->
#ifndef NO_REFREEZE
     EACH
       if
       :: state[AT(t, p)] == SERVING -> enter(t, p, FROZEN)
       :: else
       fi
     DONE
#endif
  :: else ->
     if
     :: ANY(t, FROZEN) -> goto backout
     :: else
     fi;
     EACH
       if
       :: cut -> enter(c, p, MOVED)
       :: else -> enter(c, p, IMPORTING)
       fi
     DONE;
     EACH enter(t, p, FROZEN) DONE
  fi;
  EACH
    if
    :: dirty[AT(t, p)] != 0 -> copy(p)
    :: dirty[AT(t, p)] == 0
    :: goto backout /* it takes too long */
    fi
  DONE;
  EACH enter(t, p, MOVED) DONE;
  if
  :: ! STILL(t) || ! STILL(c) -> goto backout
  :: STILL(t) && STILL(c)
  :: goto backout
  fi;
  EACH enter(c, p, SERVING) DONE;
  goto routed;

forward:
  EACH
    if
    :: ! (state[AT(t, p)] == MOVED && ident[AT(t, p)] == boot[AT(t, p)]) ->
#ifdef DRAIN_LOSSY_SOURCE
       enter(t, p, FROZEN);
       if
       :: dirty[AT(t, p)] != 0 && ! ACCEPTS(c, p) -> copy(p)
       :: else
       fi;
#endif
       enter(t, p, MOVED)
    :: else
    fi
  DONE;
  EACH
    if
    :: ACCEPTS(c, p)
    :: else ->
#ifndef FORWARD_UNREPAIRED
       if
       :: ! OPENED(c, p) && seen[AT(c, p)] != verified[AT(c, p)] && seen[AT(t, p)] == verified[AT(t, p)] ->
          enter(c, p, MOVED);
          copy(p)
       :: else
       fi;
#endif
       enter(c, p, SERVING)
    fi
  DONE;

routed:
  atomic { save(); on_target = c; cutting = false; t = c; c = 1 - t };
  goto resting;

backout:
#ifndef BACK_OUT_UNRECORDED
  if
  :: ANY(t, MOVED) -> atomic { save(); turn++ } /* the other side may have served, and may yet say so again */
  :: else
  fi;
#endif
  EACH enter(t, p, SERVING) DONE;
  atomic { save(); cutting = false };
  goto lost; /* the next attempt has an epoch of its own */

cancel:
  EACH enter(t, p, SERVING) DONE;
  atomic { save(); over = true };
  goto stop;

lost:
  goto takeover;
stop:
  atomic {
    chosen = false; content = 0; ids = 0; p = 0; by = 0; t = 0; c = 0;
    EACH seen[AT(0, p)] = 0; seen[AT(1, p)] = 0 DONE
  }
}

/* A replica is promoted that had the state of an earlier moment. */
proctype Failover() {
  byte x, was_state, was_data, was_dirty, was_epoch, was_ident, was_since, part, lost;
end:
  atomic {
    if
    :: x = 0
    :: x = 1
#if PARTS == 2
    :: x = 2
    :: x = 3
#endif
    fi;
    was_state = state[x]; was_data = data[x]; was_dirty = dirty[x]; was_epoch = epoch[x]; was_ident = ident[x];
    was_since = since[x]
  }
end2:
  atomic {
    part = x % PARTS;
    lost = data[x] & ~was_data & acked[part];
    state[x] = was_state; data[x] = was_data; dirty[x] = was_dirty; epoch[x] = was_epoch; ident[x] = was_ident;
    since[x] = was_since;
#ifdef BOOT_REPEATS
    boot[x] = 1 - boot[x];
#else
    boot[x]++;
#endif
    if
    :: owner[part] == x / PARTS -> kept[part] = kept[part] & ~lost
    :: else
    fi;
    if
    :: boot[AT(0, part)] != verified[AT(0, part)] && boot[AT(1, part)] != verified[AT(1, part)] && cutting ->
       kept[part] = kept[part] & data[AT(0, part)] & data[AT(1, part)]
    :: else
    fi;
    acked[part] = acked[part] & (data[AT(0, part)] | data[AT(1, part)]);
    was_state = 0; was_data = 0; was_dirty = 0; was_epoch = 0; was_ident = 0; was_since = 0; lost = 0; x = 0; part = 0
  }
}

proctype Down() {
end:
  gone == 0;
  if
  :: gone = 1
  :: gone = 2
  fi;
end2:
  gone = 0
}

init {
  atomic {
    byte i;
    for (i : 0 .. PARTS - 1) {
      state[AT(0, i)] = SERVING; state[AT(1, i)] = IMPORTING;
      data[AT(0, i)] = 1; dirty[AT(0, i)] = 1; acked[i] = 1; kept[i] = 1
    }
#if FAILOVERS > 0
    for (i : 1 .. FAILOVERS) { run Failover() }
#endif
#if DOWNS > 0
    for (i : 1 .. DOWNS) { run Down() }
#endif
    for (i : 1 .. WORKERS) { run Worker() }
    i = 0;
    run Writer();
    run Reader()
  }
}
