/* Cutovers that cross takeovers, failovers with loss on both sides, and sides that are down. There are two sides of one or
 * two partitions with one unit each; a writer whose route may be stale; workers that are killed at any step, or pause and
 * continue; and failovers: a place (a side's partition, which is a host) goes back to the state of any earlier moment,
 * with data, log, state and epoch, and has another boot. The copy of a unit is two steps here; migration.pml has finer
 * ones. A unit's content is the set of the writes that it has.
 *
 * Promises: at most one side accepts writes of a partition. The side that serves has all acknowledged writes except those
 * that a failover of the truth lost, or failovers of both sides during one cutover. A failover of the side that a cutover
 * leaves loses nothing once that side is retired everywhere, as long as the worker that has retired it lives to record
 * that it failed over, or to open the other side. Once the target has served, no acknowledged write is taken from a copy
 * that has it, unless an operator has chosen the truth that has lost memory. A
 * worker that waits for a side that is down does not block writes, wherever it can let them continue. Between two steps
 * the catalog routes clients to the side that the record calls the truth.
 *
 * Mutants:
 *   NO_IDENTITY          a side that failed over accepts writes by the state of an earlier moment
 *   BOOT_REPEATS         a boot is the server's name, which comes back, and not one start of it
 *   FENCE_WITHOUT_BOOT   changes name the epoch, but not the boot that the worker saw when it raised the epoch
 *   REPAIR_FROM_LOSSY    in REVERSIBLE the copy is repaired from a truth that lost memory
 *   DRAIN_UNSEEN         list and read do not check the boot of the truth
 *   DRAIN_LOSSY_SOURCE   going forward, the log of a source that lost memory is copied first
 *   FORWARD_UNREPAIRED   going forward, a target partition that lost memory before it served is opened as it is
 *   BACK_OUT_TO_LOSSY    a source that failed over after it was retired everywhere serves again, without its last writes
 *   SERVING_OF_BEFORE    a state that is older than this cutover is taken to say that the target serves
 *   BACK_OUT_UNRECORDED  a back-out from moved does not first retire the cutover's number in the record
 *   UNFREEZE_UNSEEN      a frozen truth that failed over serves again before the other side is checked
 *   BOTH_SIDES_FIRST     a takeover asks both sides before it does anything else
 *   ROUTE_UNSEEN         a takeover goes by the record alone, although the catalog routes clients to the other side already:
 *                        where that side has lost its memory since, the cutover is given up, and clients find no side
 *   NO_REFREEZE          a takeover finds a part of the source moved, and drains while the rest serves
 *
 * All of this at once (two partitions, two failovers, two cutovers, two workers, a side down) has too many states. `run`
 * has instances that cross a few of these each: workers that are killed, with everything; workers that pause, with one
 * failover of one partition, or with two partitions and a side down; two failovers with one partition. The larger
 * instances are for soak.
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
byte ident[PLACES];  /* the boot at which the state was written */

byte since[PLACES];  /* the turn in which the state was written */

/* The record, in the catalog's store. */
byte record_by;
bool on_target;
bool cutting;        /* the phase is cutover */
bool cut;            /* a cutover was begun: from then on a side that lost memory is no source of repairs */
byte verified[PLACES];
bool complete;       /* the side that the cutover leaves was retired everywhere, and failed over before the other side was
                        opened, which has everything */
bool over;           /* cancelled */
bool catalog;        /* the side that clients are routed to */

byte epochs;
byte cuts;
byte turn;           /* in the record: the number of the cutover, or of the back-out from moved */
byte gone;           /* the side that is down, plus one; 0: none */
byte acked[PARTS];
byte kept[PARTS];    /* those acknowledged writes that no failover of the truth has lost */
byte owner[PARTS];   /* the side that was the last to accept a write, or to be opened */
bool served[2];
byte closer;         /* the worker that has retired the side that the cutover leaves, and lives; 0: none */

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

/* A side that serves has all writes that no failover of the truth has lost, and serves alone. */
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

inline transition(side, part, to) {
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
    :: goto lost /* the answer is lost, or the worker is killed here */
    fi
  }
}

inline save() {
  if
  :: record_by != by -> goto stop
  :: else
  fi
}

/* Copies a partition as of now: list and read are one step, replace and remove another. (They are calls of their own;
 * migration.pml has each.) */
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
    /* No acknowledged write is taken from the copy, unless an operator chose so. */
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

/* The worker that knew that the copy has everything has been lost, or gives the cutover up. */
inline forget(who) {
  if
  :: closer == who && who != 0 ->
     closer = 0;
     if
     :: ! complete ->
        EACH
          if
          :: boot[AT(on_target, p)] != verified[AT(on_target, p)] -> kept[p] = kept[p] & data[AT(on_target, p)]
          :: else
          fi
        DONE
     :: else
     fi
  :: else
  fi
}

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
    forget(closer);
#ifndef ROUTE_UNSEEN
    if
    :: cutting && catalog != on_target -> on_target = catalog; cutting = false; complete = false /* only the record was left to do */
    :: else
    fi;
#endif
    t = on_target;
    c = 1 - t
  }
  if
  :: complete && gone == t + 1 -> goto alone
  :: else
  fi;
  EACH
    if
    :: gone != t + 1
    :: complete && gone == t + 1 -> goto alone
    fi;
    raise(t, p)
  DONE;
#ifndef BOTH_SIDES_FIRST
  if
#ifdef UNFREEZE_UNSEEN
  :: cutting && ANY(t, FROZEN) && ! ANY(t, MOVED) ->
#else
  :: cutting && ANY(t, FROZEN) && ! ANY(t, MOVED) && SAME(t) ->
#endif
    EACH transition(t, p, SERVING) DONE;
    atomic { save(); cutting = false; complete = false }
  :: else
  fi;
#endif
  EACH
    if
    :: gone != c + 1
    :: gone == c + 1 ->
       /* A worker that waits here does not block writes, if it could know that they may continue. */
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
  assert(record_by != by || catalog == t); /* clients find no side */
  EACH
    if
    :: seen[AT(c, p)] != verified[AT(c, p)] ->
       if
       :: cut -> transition(c, p, MOVED)
       :: else -> transition(c, p, IMPORTING)
       fi
    :: else
    fi
  DONE;
  if
  :: ! SAME(t) ->
     EACH
       if
       :: seen[AT(t, p)] != verified[AT(t, p)] -> transition(t, p, SERVING)
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
             :: goto stop          /* until an operator chooses */
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
  :: complete && SAME(c) -> goto forward
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
       :: state[AT(t, p)] == SERVING -> transition(t, p, FROZEN)
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
       :: cut -> transition(c, p, MOVED)
       :: else -> transition(c, p, IMPORTING)
       fi
     DONE;
     EACH transition(t, p, FROZEN) DONE
  fi;
  EACH
    if
    :: dirty[AT(t, p)] != 0 -> copy(p)
    :: dirty[AT(t, p)] == 0
    :: goto backout /* the drain takes too long */
    fi
  DONE;
  EACH
    transition(t, p, MOVED)
  DONE;
  atomic {
    if
    :: record_by == by && STILL(t) && STILL(c) -> closer = by
    :: else
    fi
  }
  if
  :: ! STILL(c) -> goto backout
#ifdef BACK_OUT_TO_LOSSY
  :: ! STILL(t) -> goto backout
#else
  :: ! STILL(t) && STILL(c) && closer == by -> atomic { save(); complete = true }; goto lost
  :: ! STILL(t) && STILL(c) && closer != by -> goto backout
#endif
  :: STILL(t) && STILL(c)
  :: atomic { STILL(t) && STILL(c) -> closer = 0 }; goto backout /* the catalog, for example, does not answer */
  fi;
  EACH transition(c, p, SERVING) DONE;
  goto routed;

forward:
  EACH
    if
    :: ! (state[AT(t, p)] == MOVED && ident[AT(t, p)] == boot[AT(t, p)]) ->
#ifdef DRAIN_LOSSY_SOURCE
       transition(t, p, FROZEN);
       if
       :: dirty[AT(t, p)] != 0 && ! ACCEPTS(c, p) -> copy(p)
       :: else
       fi;
#endif
       transition(t, p, MOVED)
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
          transition(c, p, MOVED);
          copy(p)
       :: else
       fi;
#endif
       transition(c, p, SERVING)
    fi
  DONE;

routed:
  atomic {
    save();
    catalog = c;
    if
    :: true
    :: goto lost /* the worker is killed here */
    fi
  }
  atomic { save(); on_target = c; cutting = false; complete = false; closer = 0; t = c; c = 1 - t };
  goto resting;

alone:
  EACH
    if
    :: gone != c + 1
    :: gone == c + 1 -> goto lost
    fi;
    raise(c, p)
  DONE;
  if
  :: ! SAME(c) -> goto lost /* it waits for the other side, too */
  :: else
  fi;
  EACH transition(c, p, SERVING) DONE;
  atomic { save(); catalog = c };
  atomic { save(); on_target = c; cutting = false; complete = false };
  goto lost;

backout:
  atomic {
    if
    :: closer == by && ! STILL(c) -> forget(by)
    :: closer == by && STILL(c) -> closer = 0
    :: else
    fi
  };
#ifndef BACK_OUT_UNRECORDED
  if
  :: ANY(t, MOVED) || complete -> atomic { save(); turn++; complete = false } /* the other side may have served, and may still say so later */
  :: else
  fi;
#endif
  EACH transition(t, p, SERVING) DONE;
  atomic { save(); cutting = false; complete = false };
  goto lost; /* the next attempt needs an epoch of its own */

cancel:
  EACH transition(t, p, SERVING) DONE;
  atomic { save(); over = true };
  goto stop;

lost:
  atomic { forget(by) };
  goto takeover;
stop:
  atomic {
    forget(by);
    chosen = false; content = 0; ids = 0; p = 0; by = 0; t = 0; c = 0;
    EACH seen[AT(0, p)] = 0; seen[AT(1, p)] = 0 DONE
  }
}

/* A replica is promoted that has the state of an earlier moment. */
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
    :: owner[part] == x / PARTS && ! (x / PARTS == on_target && (closer != 0 || complete)) -> kept[part] = kept[part] & ~lost
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
