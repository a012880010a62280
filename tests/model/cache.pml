/* The protocol of backends/cached: one key on one cache server in front of one master. Readers answer hits, or read the
 * master, and fill the cache if they have its lease; writers mark the key, write to the master, and remove their mark.
 *
 * A server has a guard: a number that is part of every key, and whether the server is trusted by now. What is stored
 * under a guard that is not in force any more stays there, and can still be read by whoever knows no other guard.
 *
 * Faults: the server loses its memory (RESTARTS), forgets the key (EVICTIONS), cannot be reached by a writer (CUTS); a
 * writer dies, and what it has sent to the master happens later or never (DEATHS); the dataset leaves for another
 * backend, where it is written to, and comes back (LEAVES).
 *
 * Mutants:
 *   NO_MARK             a writer deletes the key after its write, and does nothing before
 *   MARK_REPLACED       a mark replaces the one of another writer, and the first to be done removes it
 *   FILL_ANY_LEASE      a fill does not look whose lease is there
 *   NO_QUARANTINE       a server is trusted as soon as it has a new guard
 *   NO_LEASE            a reader trusts what it knows of ZooKeeper however old that is
 *   NO_PATIENCE         a writer that has suspended a server does not wait until all readers know
 *   SAME_GUARD          a server that is no longer suspended keeps its guard
 *   NO_BUMP             the guard stays when the dataset leaves
 *   EVICT_MARK          the server forgets a mark before its writer is done
 *
 * What is assumed: a quarantine is longer than any write takes, also one whose writer has died; and a server does not
 * forget a mark so soon. docs/caches.md says what that means to operators.
 */
#ifndef READERS
#define READERS 2
#endif
#ifndef READS
#define READS 2
#endif
#ifndef WRITERS
#define WRITERS 2
#endif
#ifndef RESTARTS
#define RESTARTS 0
#endif
#ifndef EVICTIONS
#define EVICTIONS 0
#endif
#ifndef CUTS
#define CUTS 0
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef LEAVES
#define LEAVES 0
#endif
#define GUARDS (1 + RESTARTS + CUTS + LEAVES) /* at most 4 */

#define NOWHERE 4 /* a writer that marks nothing, because the server is suspended */

#define NONE 0
#define LEASE 1
#define VALUE 2
#define MARK 3

typedef Item {
  byte kind;
  byte value; /* of a VALUE; of a LEASE, who has it */
  byte marks; /* of a MARK: a bit for each writer */
};

Item items[GUARDS + 1]; /* by guard */
byte guard = 0;
bool trusted = true;   /* the guard says that the server may answer reads */
byte master;           /* what the master has: how many writes were done */
byte seen;             /* the latest that any client has been told */
bool suspended;        /* ZooKeeper says that the server is not used */
bool lease[READERS];   /* the reader believes that the server is used */
bool moved, frozen;
byte writing;          /* how many writers are between their mark and their write */
byte pending[5]; /* by guard, or NOWHERE: writers that have begun so, and whose write may still happen */
byte dead;             /* a bit for each writer that is dead and whose write is over */
byte deaths;

#ifdef EVICT_MARK
#define MayForget true
#else
#define MayForget (items[guard].kind != MARK)
#endif
#ifdef NO_QUARANTINE
#define Quarantined true
#else /* It is counted from when the guard was made and the server was not suspended any more. */
#define Quarantined (pending[NOWHERE] == 0 && (guard < 1 || pending[0] == 0) && (guard < 2 || pending[1] == 0) && (guard < 3 || pending[2] == 0))
#endif
#ifdef NO_PATIENCE
#define EverybodyKnows true
#else
#define EverybodyKnows (! lease[0] && ! lease[READERS - 1])
#endif
#define Told(v) if :: v > seen -> seen = v :: else fi

inline LookAtKey() {
  if
  :: got == VALUE ->
     if
     :: items[known].kind == VALUE -> v = items[known].value
     :: items[known].kind == NONE -> got = LEASE; items[known].kind = LEASE; items[known].value = me
     :: else -> got = MARK
     fi
  :: else
  fi
}

inline LookAtGuard() {
  if
  :: guard != known || ! trusted -> known = guard; got = MARK
  :: else
  fi
}

proctype Reader(byte me) {
  byte least, v, known, n;
  byte got; /* as the kinds of items: LEASE is one that was won now, MARK is anything that leaves the master */
  bool may;
  for (n : 1 .. READS) {
    /* What a process knows of ZooKeeper is never newer than this, and often older. */
#if CUTS > 0
    if
    :: atomic { lease[me] = ! suspended }
    :: true
    fi;
#endif
    least = seen;
    got = VALUE;
    atomic { LookAtKey() }
    atomic { LookAtGuard() }
    if
    :: got == VALUE ->
       atomic {
#ifdef NO_LEASE
         may = true;
#else
         may = lease[me];
#endif
         if
         :: may -> assert(v >= least); Told(v)
         :: else -> got = MARK
         fi
       }
    :: else
    fi;
    if
    :: got != VALUE ->
       atomic {
         v = master;
         if
         :: moved -> got = MARK /* it was read elsewhere */
         :: else
         fi
       }
       if
       :: got == LEASE ->
          atomic {
            if
#ifdef FILL_ANY_LEASE
            :: items[known].kind == LEASE ->
#else
            :: items[known].kind == LEASE && items[known].value == me ->
#endif
               items[known].kind = VALUE; items[known].value = v
            :: else
            fi
          }
       :: else
       fi;
       atomic { assert(v >= least); Told(v) }
    :: else
    fi
  }
}

inline Forget(g) { /* the writer's mark, and whatever else is there unless others have marked it */
  if
  :: items[g].kind == MARK ->
     items[g].marks = items[g].marks & ~(1 << me);
#ifdef MARK_REPLACED
     items[g].marks = 0;
#endif
     if
     :: items[g].marks == 0 -> items[g].kind = NONE
     :: else
     fi
  :: items[g].kind == VALUE || items[g].kind == LEASE -> items[g].kind = NONE
  :: else
  fi
}

proctype Writer(byte me; bool cut) {
  byte known, mine;
  bool marked;
mark:
  if
  :: cut ->
     /* It cannot reach the server: nobody may use that from now on. */
     suspended = true;
     if
     :: atomic { suspended && EverybodyKnows -> known = NOWHERE; pending[known]++ }
     :: atomic { ! suspended -> goto mark } /* somebody who reaches it lets it be used again */
     fi
  :: else ->
     atomic { known = guard; pending[known]++ }
#ifndef NO_MARK
     atomic {
#ifdef MARK_REPLACED
       items[known].marks = 0;
#endif
       if
       :: items[known].kind != MARK -> items[known].kind = MARK; items[known].marks = 0
       :: else
       fi;
       items[known].marks = items[known].marks | (1 << me);
       marked = true
     }
     atomic {
       if
       :: guard != known -> pending[known]--; goto mark
       :: else
       fi
     }
#endif
  fi;
  /* The write is sent to the master; a dataset that leaves refuses it. */
  atomic {
    if
    :: frozen -> goto unmark
    :: else -> writing++
    fi
  }
  if
  :: atomic { deaths < DEATHS -> deaths++ }
     if
     :: atomic { master++; writing-- }
     :: writing--
     fi;
     atomic { pending[known]--; dead = dead | (1 << me) }
     goto over
  :: atomic { master++; mine = master; writing-- }
  fi;
unmark:
  atomic {
#ifdef NO_MARK
    marked = true;
#endif
    if
    :: marked -> Forget(known)
    :: else
    fi;
    pending[known]--
  }
  atomic { Told(mine) }
over:
  skip
}

/* All of a reader's knowledge of ZooKeeper becomes too old at some time. */
proctype Time() {
end:
  do
#if CUTS > 0
  :: lease[0] -> lease[0] = false
#endif
#if CUTS > 0 && READERS > 1
  :: lease[1] -> lease[1] = false
#endif
  /* Marks of the dead expire, once the master is done with what they sent. */
  :: atomic {
       items[guard].kind == MARK && dead != 0 && (items[guard].marks & ~dead) == 0 && pending[guard] == 0 ->
       items[guard].kind = NONE; items[guard].marks = 0
     }
  /* A quarantine ends when whoever began under an earlier guard, and may die, is done. */
  :: atomic { ! trusted && ! suspended && Quarantined -> trusted = true }
  od
}

#define NextGuard() guard++; items[guard].kind = NONE; items[guard].marks = 0

proctype Faults() {
  byte restarts, evictions, leaves, cuts;
  byte g;
end:
  do
  :: atomic {
       restarts < RESTARTS -> restarts++;
       for (g : 0 .. GUARDS) { items[g].kind = NONE; items[g].marks = 0 }
       NextGuard();
       trusted = false
     }
  :: atomic {
       evictions < EVICTIONS && items[guard].kind != NONE && MayForget -> evictions++; items[guard].kind = NONE; items[guard].marks = 0
     }
  :: cuts < CUTS && suspended ->
     cuts++;
     /* Whoever reaches the server lets it be used again: first under a new guard, then in ZooKeeper. */
#ifndef SAME_GUARD
     atomic { NextGuard(); trusted = false }
#endif
     suspended = false
  :: leaves < LEAVES ->
     leaves++;
     atomic { writing == 0 -> frozen = true }
     moved = true;
#ifndef NO_BUMP
     atomic { NextGuard(); trusted = false }
#endif
     atomic { master++; Told(master) }
     moved = false;
     frozen = false
  od
}

init {
  atomic {
    byte w;
    for (w : 0 .. READERS - 1) { lease[w] = true; run Reader(w) }
    for (w : 0 .. WRITERS - 1) { run Writer(w, w < CUTS) }
    run Time();
    run Faults()
  }
}
