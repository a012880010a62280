/* Shards that are opened while a dataset migrates. Side M has two shards, the second of which is opened at any time; side
 * R has one partition with all units. Unit 1 belongs to the second shard. The dataset migrates from M to R, and back.
 * `kv shards init` makes missing tables at any time, and may have read the catalog long before.
 *
 * Mutants:
 *   FIRST_PARTITION     a cutover arms the copy in the state that its first partition has
 *   UNCAPTURED          a new shard of the truth is made without capture
 *   NEW_IN_CUTOVER      a new shard is brought in when the others are frozen already
 *   INIT_BY_NAME        init makes a table where none has its name, whatever else is there
 *   INIT_CATALOG_FIRST  init reads the catalog first, and then which shards there are
 *   SHARDS_FIRST        a migration reads which shards there are first, and then names itself in the catalog
 *
 * The rules of the protocol: the set of shards is in the record; it is read after the catalog names the migration, and
 * grows only between two steps. Init reads the shard map first and the catalog then, leaves a dataset alone that migrates
 * by the catalog, and, on each shard, one whose state is there.
 */
#ifndef WRITES
#define WRITES 2
#endif
#ifndef CUTS
#define CUTS 2
#endif

#define ABSENT 0
#define IMPORTING 1
#define SERVING 2
#define FROZEN 3
#define MOVED 4

/* The shards of side M; the units of side R. Data is the number of the unit's last write. */
byte state[2];
bool named[2];     /* the table has the dataset's name */
bool managed[2];   /* a state is stored beside the table */
bool capture[2];
byte m_data[2], r_data[2];
bool m_dirty[2], r_dirty[2];
byte r_state;
bool r_capture;

bool open;         /* the second shard is in the map */
bool migrates;     /* in the catalog */
bool has;          /* the record's set has the second shard */
bool on_r;
byte issued;
byte acked[2];

#define M_ACCEPTS(unit) (named[unit] && (! managed[unit] || state[unit] == SERVING))
#define R_ACCEPTS (r_state == SERVING)

proctype Writer() {
  byte left = WRITES, unit;
end:
  do
  :: left > 0 ->
     left--;
     if
     :: unit = 0
     :: open -> unit = 1
     fi;
end2:
     atomic {
       if
       :: M_ACCEPTS(unit) ->
          assert(! R_ACCEPTS);
          assert(m_data[unit] >= acked[unit]);
          issued++;
          m_data[unit] = issued;
          if
          :: managed[unit] && capture[unit] -> m_dirty[unit] = 1
          :: else
          fi
       :: R_ACCEPTS ->
          assert(! M_ACCEPTS(unit));
          assert(r_data[unit] >= acked[unit]);
          issued++;
          r_data[unit] = issued;
          if
          :: r_capture -> r_dirty[unit] = 1
          :: else
          fi
       fi;
       acked[unit] = issued
     }
  :: left == 0 -> break
  od
}

/* A side that serves has all acknowledged writes. */
proctype Reader() {
end:
  do
  :: atomic { M_ACCEPTS(0) -> assert(m_data[0] >= acked[0]) }
  :: atomic { M_ACCEPTS(1) -> assert(m_data[1] >= acked[1]) }
  :: atomic { R_ACCEPTS -> assert(r_data[0] >= acked[0] && r_data[1] >= acked[1]) }
  od
}

proctype Open() {
end:
  open = true
}

proctype Init() {
  bool shards, moves;
  byte i;
end:
#ifdef INIT_CATALOG_FIRST
  moves = migrates;
  shards = open;
#else
  shards = open;
  moves = migrates;
#endif
  if
  :: ! moves ->
     for (i : 0 .. 1) {
       atomic {
         if
#ifdef INIT_BY_NAME
         :: (i == 0 || shards) && ! named[i] ->
            named[i] = 1; managed[i] = 0; m_data[i] = 0
#else
         :: (i == 0 || shards) && ! named[i] && ! managed[i] -> named[i] = 1
#endif
         :: else
         fi
       }
     }
  :: else
  fi
}

/* A transition of a shard, which makes what is missing. */
inline m_transition(shard, to, captures) {
  atomic {
    managed[shard] = 1;
    capture[shard] = captures;
    state[shard] = to;
    named[shard] = (to == SERVING || to == FROZEN);
    if
    :: to == ABSENT -> m_data[shard] = 0; managed[shard] = 0
    :: else
    fi
  }
}

inline m_transition_all(to) {
  m_transition(0, to, 1);
  if
  :: has -> m_transition(1, to, 1)
  :: else
  fi
}

inline bring_in() {
  if
  :: open && ! has ->
     if
     :: on_r -> m_transition(1, MOVED, 1)
#ifdef UNCAPTURED
     :: else -> m_transition(1, SERVING, 0)
#else
     :: else -> m_transition(1, SERVING, 1)
#endif
     fi;
     has = true
  :: else
  fi
}

/* Copies a unit, unless it belongs to a shard of the copy that the set does not have yet. */
inline copy(unit) {
  if
  :: ! on_r ->
     atomic { content = m_data[unit]; was = m_dirty[unit]; m_dirty[unit] = 0 }
     r_data[unit] = content
  :: on_r && managed[unit] && state[unit] == MOVED ->
     atomic { content = r_data[unit]; was = r_dirty[unit]; r_dirty[unit] = 0 }
     atomic { m_data[unit] = content }
  :: else
  fi;
  content = 0; was = 0
}

proctype Worker() {
  byte content, cuts;
  bool was;
#ifdef SHARDS_FIRST
  has = open;
  migrates = true;
#else
  migrates = true;
  has = open;
#endif
  r_state = IMPORTING;
  m_transition_all(SERVING);
  copy(0);
  copy(1);
  do
  :: bring_in()
  :: m_dirty[0] || r_dirty[0] -> copy(0)
  :: m_dirty[1] || r_dirty[1] -> copy(1)
  :: cuts < CUTS ->
     cuts++;
     if
     :: ! on_r ->
        m_transition_all(FROZEN);
#ifdef NEW_IN_CUTOVER
        bring_in();
#endif
        if
        :: m_dirty[0] -> copy(0)
        :: else
        fi;
        if
        :: m_dirty[1] -> copy(1)
        :: else
        fi;
        m_transition_all(MOVED);
        atomic { r_state = SERVING; r_capture = 1 };
        on_r = true
     :: on_r ->
#ifdef FIRST_PARTITION
        if
        :: open && ! managed[1] -> m_transition_all(ABSENT)
        :: else -> m_transition_all(MOVED)
        fi;
#else
        m_transition_all(MOVED);
#endif
        r_state = FROZEN;
        if
        :: r_dirty[0] -> copy(0)
        :: else
        fi;
        if
        :: r_dirty[1] -> copy(1)
        :: else
        fi;
        if
        :: r_dirty[1] || r_dirty[0] -> r_state = SERVING /* back: a new shard has to be brought in first */
        :: else ->
           r_state = MOVED;
           m_transition_all(SERVING);
           on_r = false
        fi
     fi
  od
}

init {
  atomic {
    named[0] = 1;
    run Writer(); run Reader(); run Open(); run Init(); run Worker()
  }
}
