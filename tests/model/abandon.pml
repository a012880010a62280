/* A side is given up (`abandon`) while a cutover is under way. There are two sides; the catalog, which routes clients; the
 * migration's record, which workers go by; workers that are killed at any step, or pause and continue; sides that go down
 * and come back; and an operator, who may say of a side that is down that it will never be back. Copying is one step here,
 * and so is everything in a cutover up to the source being closed; migration.pml and cutover.pml have these.
 *
 * Promises: at most one side accepts writes. A side that was given up takes acknowledged writes with it only if the record
 * said, when the operator gave the command, that this side was the truth.
 *
 * Mutants:
 *   BY_RECORD      a worker that takes over gives a side up by its record, although the catalog routes clients there already
 *   LOOK_FIRST     the catalog is read before the record is claimed, so that an earlier worker can still change it
 *   ASKED_STAYS    a cutover that ends does not forget that the side which serves from now on was to be given up
 *   ENTRY_UNFENCED the catalog is changed without checking that the record is still this worker's
 *   STALE          no mistake of the protocol but its limit: a client that has not read the catalog since before an earlier
 *                  cutover may write to a side that is open already and not in the catalog yet. If the worker and that
 *                  side are lost in this moment, and the side is given up, its write is lost
 *
 * The rules of the protocol: a worker that takes a cutover over, or gives a side up, claims the record, and then reads the
 * catalog. If that names the other side, the cutover is over, and the record says so before anything else is done. The
 * command to give up the side that was the copy then counts no more: the operator has to give it again.
 */
#ifndef WORKERS
#define WORKERS 2
#endif
#ifndef EPOCHS
#define EPOCHS 3
#endif
#ifndef CUTS
#define CUTS 1
#endif
#ifndef DOWNS
#define DOWNS 2
#endif
#ifndef ASKS
#define ASKS 1
#endif
#ifndef WRITES
#define WRITES 1
#endif

#define MOVED 0
#define SERVING 1

byte state[2];
byte data[2];      /* a bit for each write that is there */
byte epoch[2];
bool down[2];
bool wiped[2];     /* was found to be down by a worker that gives it up: the operator keeps it away */
bool alone[2];     /* serves without a migration */

bool catalog;      /* the side that clients use */

/* The record. */
byte record_by;
byte version;      /* grows with each change of it */
bool on;           /* the side that is the truth */
bool cutting;      /* the phase is cutover */
bool asked;        /* to give up the side `asked_of` */
bool asked_of;
bool told;         /* the record said that it was the truth */
bool over;

byte epochs, cuts, asks, downs;
byte kept = 1;     /* the writes that were acknowledged, and not given up by an operator who knew */

#define ACCEPTS(side) (state[side] == SERVING && ! down[side])

#ifdef STALE
#define ROUTE route
#else
#define ROUTE catalog
#endif

proctype Writer() {
  byte left = WRITES, bits = 2;
  bool route;
end:
  do
#ifdef STALE
  :: route = catalog
#endif
  :: atomic {
       left > 0 && ACCEPTS(ROUTE) ->
       assert(! ACCEPTS(1 - ROUTE)); /* two sides accept */
       assert((kept & ~data[ROUTE]) == 0); /* lost */
       data[ROUTE] = data[ROUTE] | bits;
       kept = kept | bits;
       bits = bits << 1;
       left--
     }
  od
}

proctype Reader() {
end:
  do
  :: atomic { ACCEPTS(0) -> assert(! ACCEPTS(1)); assert((kept & ~data[0]) == 0) }
  :: atomic { ACCEPTS(1) -> assert(! ACCEPTS(0)); assert((kept & ~data[1]) == 0) }
  od
}

proctype Sides() {
end:
  do
  :: atomic { downs < DOWNS && ! down[0] -> downs++; down[0] = true }
  :: atomic { downs < DOWNS && ! down[1] -> downs++; down[1] = true }
  :: atomic { down[0] && ! wiped[0] -> down[0] = false }
  :: atomic { down[1] && ! wiped[1] -> down[1] = false }
  od
}

/* The command is refused while the side answers. */
proctype Operator() {
end:
  do
  :: atomic {
       asks < ASKS && ! asked && ! over && down[0] ->
       asks++; version++; asked = true; asked_of = 0; told = (on == 0)
     }
  :: atomic {
       asks < ASKS && ! asked && ! over && down[1] ->
       asks++; version++; asked = true; asked_of = 1; told = (on == 1)
     }
  od
}

/* With KILLS, a step may be the last one of this worker, which then takes over anew: as itself, or as its successor. */
#ifdef KILLS
#define OR_KILLED if :: true :: goto takeover fi
#else
#define OR_KILLED skip
#endif

inline fence() {
  if
  :: record_by != by -> goto takeover
  :: else
  fi
}

inline claim() {
  if
  :: version != seen -> goto takeover
  :: else -> record_by = by; version++
  fi
}

inline raise(side) {
  if
  :: epoch[side] > by -> goto takeover
  :: else -> epoch[side] = by
  fi
}

/* Changes a side's state, if it can be reached and no later worker has raised its epoch. */
inline transition(side, to) {
  atomic {
    if
    :: down[side] || epoch[side] != by -> goto takeover
    :: else -> state[side] = to
    fi;
    OR_KILLED
  }
}

/* Writes into the record that the cutover has ended. */
inline record_cutover() {
  on = c; cutting = false; version++;
#ifndef ASKED_STAYS
  if
  :: asked && asked_of == c -> asked = false; told = false; wiped[c] = false
  :: else
  fi
#endif
}

proctype Worker() {
  byte by, seen;
  bool t, c, goes_on, routed;
end:
takeover:
  atomic {
    by = 0; seen = 0; t = 0; c = 0; goes_on = false; routed = false;
    ! over && epochs < EPOCHS ->
    epochs++;
    by = epochs;
    seen = version
  }
  if
  :: asked -> goto abandon
  :: ! asked
  fi;
  atomic { claim(); seen = 0; t = on; c = 1 - t; goes_on = cutting; OR_KILLED }
  atomic { ! down[t] -> raise(t) }
  if
  :: atomic { ! down[c] -> raise(c) }
  :: asked -> goto takeover
  fi;
  if
  :: goes_on -> goto resume
  :: else
  fi;

resting:
  transition(c, MOVED);
  transition(t, SERVING);
  do
  :: atomic { ! down[t] && ! down[c] && epoch[c] == by && data[c] != data[t] -> data[c] = data[t] }
  :: goto takeover
  :: atomic { cuts < CUTS && ! asked && record_by == by -> cuts++; cutting = true; version++ }; break
  od;

cutover:
  atomic {
    if
    :: down[t] || down[c] || epoch[t] != by || epoch[c] != by -> goto takeover
    :: else -> state[t] = MOVED; data[c] = data[t]
    fi;
    OR_KILLED
  }
open:
  transition(c, SERVING);
route:
  atomic {
#ifndef ENTRY_UNFENCED
    fence();
#endif
    catalog = c;
    OR_KILLED
  }
  atomic { fence(); record_cutover() }
  goto takeover;

resume:
#ifndef BY_RECORD
  if
  :: catalog == c -> atomic { fence(); record_cutover() } goto takeover
  :: else
  fi;
#endif
  if
  :: state[c] == SERVING -> transition(t, MOVED); goto route
  :: state[c] != SERVING && state[t] == MOVED -> goto cutover
  :: state[c] != SERVING -> /* it is given up */
     transition(t, SERVING);
     atomic { fence(); cutting = false; version++ }
     goto takeover
  fi;

abandon:
  c = asked_of; t = 1 - c; /* the side to be given up, and the one that is left */
#ifdef LOOK_FIRST
  routed = (catalog == c);
#endif
  atomic {
    ! down[t] || ! asked ->
    if
    :: ! asked -> goto takeover
    :: asked && ! down[c] && ! alone[t] -> /* it answers again, and is not given up */
       claim();
       asked = false; told = false;
       goto takeover
    :: else -> wiped[c] = true
    fi
  }
  atomic {
    if
    :: ! asked -> goto takeover
    :: else
    fi;
    claim();
    seen = 0;
    goes_on = (cutting && on == t);
    OR_KILLED
  }
#if ! defined(LOOK_FIRST) && ! defined(BY_RECORD)
  routed = (catalog == c);
#endif
  if
  :: goes_on && routed -> atomic { fence(); record_cutover() } goto takeover
  :: else
  fi;
  atomic {
    if
    :: down[t] -> goto takeover
    :: else -> raise(t)
    fi
  }
  atomic {
    if
    :: down[t] || epoch[t] != by -> goto takeover
    :: else ->
       state[t] = SERVING; alone[t] = true;
       if
       :: told -> kept = kept & data[t]
       :: else
       fi
    fi;
    OR_KILLED
  }
  atomic { fence(); catalog = t; OR_KILLED }
  atomic { fence(); over = true }
}

init {
  atomic {
    byte i;
    state[0] = SERVING; data[0] = 1; data[1] = 1;
    for (i : 1 .. WORKERS) { run Worker() }
    i = 0;
    run Writer(); run Reader(); run Operator(); run Sides()
  }
}
