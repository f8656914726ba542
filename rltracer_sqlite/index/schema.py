"""The schema of an index, in one place: a comment on every table and column is its documentation.

Datasette's descriptions, the reference in docs/schema.md and metadata.yml are all made from this text. A page of a
table shows its columns in this order, so what people decide by stands first. Nothing may depend on the order: an older
index has another one.
"""

from __future__ import annotations

# The bin of a pass rate, from whole numbers, as `passrates.pass_bin` has it.
PASS_BUCKET = """case
        when scored = 0 then null
        when successes = 0 then '0'
        when successes = scored then '1'
        when successes * 4 < scored then '0–0.25'
        when successes * 2 < scored then '0.25–0.5'
        when successes * 4 < scored * 3 then '0.5–0.75'
        else '0.75–1' end"""
TABLES = f"""
-- One training or evaluation run: a folder of rollout files.
create table runs (
    id integer primary key autoincrement, -- the run's number in this index; never used again
    name text not null unique,         -- a short name, chosen when indexing
    root text not null,                -- the folder that shard paths are relative to
    source text not null,              -- the kind of files: prime-rl, …
    tokenizer text,                    -- the tokenizer used to turn ids into text, if any
    mapping text,                      -- how its tables are read, as TOML, where a mapping says it
    step_kind text,                    -- what a step counts, where the source says it: training steps, evaluations, …
    success_path text not null,        -- the recorded value that decides success, as a dotted path
    success_threshold real not null,   -- a success is a trajectory whose value is at least this
    success_chosen integer not null default 0, -- 1: the rule was given by a person; 0: it is the default
    created_at text not null,          -- when the run was first indexed, UTC
    indexed_at text                    -- when something of the run was last read, UTC; an indexing that found nothing new leaves it
) strict;

-- One training step of a run, per split. One that was read and has no trajectory has no record, or only such as are
-- counted in other steps.
create table steps (
    id integer primary key,            -- the row's number
    run_id integer not null references runs(id), -- the run
    step integer,                      -- the step's number; null for a source without steps, such as an evaluation
    split text,                        -- train, eval, or null where nothing says which
    trajectories integer not null default 0,  -- how many trajectories
    prompt_groups integer not null default 0, -- how many prompt groups
    scored integer not null default 0,        -- trajectories that passed or failed
    successes integer not null default 0,     -- scored trajectories that passed
    pass_rate real generated always as (successes * 1.0 / nullif(scored, 0)) virtual, -- successes / scored
    rewarded integer not null default 0,      -- trajectories that have a reward
    reward_mean real,                  -- mean of the total reward
    reward_std real,                   -- population standard deviation of the total reward
    tokens_mean real,                  -- mean of the completion tokens, where recorded
    turns_mean real,                   -- mean number of assistant turns
    truncated integer,                 -- trajectories cut off by a limit; null: none records whether it was
    errors integer,                    -- trajectories that ended with an error; null: none records whether it did
    indexed_at text                    -- when the step was last read, UTC; null: discovered, but not read yet
) strict;

-- One source file of a run, and how far it has been read.
create table shards (
    id integer primary key,            -- the row's number
    run_id integer not null references runs(id), -- the run
    path text not null,                -- what it is known by: relative to runs.root, without the ending of a compression
    file text not null,                -- the file as it was last read, relative to runs.root: path, or path with .zst
    layout text not null,              -- the shape of the files around it: traces, rollouts, stream, …
    producer text,                     -- null: holds the records; else who wrote these later facts: effective, orch, trainer
    step integer,                      -- the step by the file's place, null where the records say it
    split text,                        -- train or eval by the file's place, null where the records say it
    size integer not null,             -- bytes on disk when it was last read; 0: it is empty, or was not opened, since its name says that it is left aside
    mtime_ns integer not null,         -- modification time then, nanoseconds; of a remote file whole seconds, and below them a hash of its ETag
    head_hash text,                    -- hash of the first 4 KiB of what was read
    tail_hash text,                    -- hash of the last 4 KiB of what was read
    indexed_bytes integer not null default 0, -- bytes read so far, uncompressed; the next read starts here
    lines integer not null default 0,  -- complete lines read so far
    records integer not null default 0,  -- trajectories or later facts found in it
    problems integer not null default 0, -- lines that could not be read, or in part only, or 1 for all of it; a file that is left aside for a known reason has 0
    state text not null                -- complete, waiting (ends in the middle of a line), reading, aside (left aside: no rollouts, or the same ones as in other files), gone (has vanished) or unread (an error)
) strict;

-- A distinct prompt: the messages before the first assistant turn, and the task behind them.
create table prompts (
    id integer primary key,            -- the prompt's number
    preview text not null,             -- the first user text in one line
    task text not null,                -- the task's stable key or hash, else a hash of its recorded ground truth, else ''
    key text not null                  -- sha256 of the (role, text) of the prompt's messages
) strict;

-- The trajectories of one prompt within a step, split and env (and native group, where one is recorded).
create table prompt_groups (
    id integer primary key autoincrement, -- the group's number; never used again
    run_id integer not null references runs(id), -- the run
    step integer,                      -- the training step
    split text,                        -- train or eval
    env text,                          -- the environment
    prompt_id integer not null references prompts(id), -- the prompt
    trajectories integer not null default 0, -- how many trajectories were sampled
    scored integer not null default 0,       -- trajectories that passed or failed
    successes integer not null default 0,    -- scored trajectories that passed
    pass_rate real generated always as (successes * 1.0 / nullif(scored, 0)) virtual, -- successes / scored: the difficulty; null: none is scored
    reward_mean real,                  -- mean of the total reward
    reward_min real,                   -- smallest total reward
    reward_max real,                   -- largest total reward
    reward_std real,                   -- population standard deviation of the total reward
    zero_variance integer generated always as (case
        when reward_min is null or trajectories < 2 then null
        else reward_min = reward_max end) virtual, -- 1: all rewards are equal, so the group gives no GRPO signal
    pass_bucket text generated always as ({PASS_BUCKET}) virtual,    -- the pass rate in ordered bins, with its exact ends apart
    rewarded integer not null default 0,     -- trajectories that have a reward
    group_id text                      -- the training system's own group id (GRPO group), if recorded
) strict;

-- One sampled, possibly multi-turn trajectory: where it is and what it can be selected by. Its text stays in its file.
-- Its prompt is that of its group: join prompt_groups g on g.id = trajectories.prompt_group_id for g.prompt_id.
create table trajectories (
    id integer primary key autoincrement, -- the trajectory's number; never changes and is never used again
    run_id integer not null references runs(id), -- the run
    step integer,                      -- the training step, by the file's place or its arrival
    split text,                        -- train or eval
    env text,                          -- the environment
    preview text not null check (length(preview) <= 400), -- the prompt in one line
    success integer,                   -- 1: passed, 0: failed, by the run's success rule; null: unscored
    reward real,                       -- the total reward: as recorded, else the sum of score × weight
    turns integer not null,            -- assistant turns, over all branches
    completion_tokens integer,         -- tokens sampled, over all model calls
    stop_condition text,               -- why it stopped, in the system's own words
    error_type text,                   -- the type of its first error
    prompt_group_id integer references prompt_groups(id), -- the prompt group; its prompt_id is the prompt
    group_pass_rate real,              -- the pass rate of its prompt group: how hard its prompt was; null: none of the group is scored
    tool_calls integer,                -- tool calls, over all branches; null: its text is not known, or in no messages
    advantage real,                    -- the recorded advantage; null: none is recorded, and the view advantages has a derived one
    agent text,                        -- the agent's name, in environments with several
    tools text,                        -- the names of the tools it called: a JSON array in the order of their first calls, of at most 50 names, each cut at 100 characters; null: no call has a name
    truncated integer,                 -- 1: cut off by a limit
    ok integer,                        -- 1: finished without an error
    branches integer not null,         -- root-to-leaf paths of the message graph
    prompt_tokens integer,             -- tokens of the prompt of the last model call
    seconds real,                      -- how long it took
    started_at real,                   -- Unix time, seconds
    effective integer,                 -- 1: known to be part of a training batch, or, of an evaluation, kept by it
    dispatch_step integer,             -- the step at which its sampling began, if recorded
    ship_step integer,                 -- the step that trained on it, if recorded
    logprob_mean real,                 -- mean logprob of the sampled tokens, where the index has read them
    policy_version integer,            -- the version of the policy that sampled it
    uid text not null,                 -- the recorded id, unique in a run; else the shard's path and byte offset
    episode_id text,                   -- the episode it belongs to
    group_id text,                     -- the training system's own group id
    task_key text,                     -- the task's recorded key or name
    data_idx integer,                  -- task.data.idx: the row of the training data, where it is a number
    content_kind text not null,        -- messages, or what the text was recovered from
    shard_id integer not null references shards(id), -- the file that holds the record
    byte_offset integer not null,      -- where the record starts, in the uncompressed bytes
    byte_length integer not null,      -- how many bytes the record has
    line integer,                      -- the record's line, counted from 1
    item integer,                      -- the place inside the record; null where the record is the trajectory
    gone integer not null default 0    -- 1: since it was indexed its file has vanished, or can no longer be read
) strict;

-- A later fact about a trajectory that stands in another place than its record: an advantage, trainer logprobs, "shipped in step N".
create table annotations (
    id integer primary key,            -- the row's number
    run_id integer not null references runs(id), -- the run
    uid text not null,                 -- the trajectory's uid
    trajectory_id integer references trajectories(id), -- the trajectory; null until its record is found
    producer text not null,            -- who wrote it: effective, orch, trainer, …; record: what the record itself says; copy: the same record elsewhere
    effective integer,                 -- what it says about trajectories.effective
    advantage real,                    -- what it says about trajectories.advantage
    ship_step integer,                 -- what it says about trajectories.ship_step
    logprob_mean real,                 -- what it says about trajectories.logprob_mean
    shard_id integer not null references shards(id), -- the file that holds it
    byte_offset integer not null,      -- where it starts, in the uncompressed bytes
    byte_length integer not null,      -- how many bytes it has
    line integer,                      -- its line, counted from 1
    item integer                       -- the place inside its record
) strict;

-- The recorded values of a run by their dotted path, and the column of trajectories that holds each.
create table fields (
    id integer primary key,            -- the row's number
    path text not null unique,         -- for example metrics.num_turns or rewards.format.score
    column_name text,                  -- the column of trajectories; null: not indexed, read from the record
    kind text not null,                -- number, text, or long text (which is not indexed)
    trajectories integer               -- how many trajectories have a value; null for the schema's own columns
) strict;

-- The sum of a recorded number per step, split and env: what curves over steps are drawn from.
create table step_values (
    id integer primary key,            -- the row's number
    run_id integer not null references runs(id), -- the run
    step integer,                      -- the training step
    split text,                        -- train or eval
    env text,                          -- the environment
    name text not null,                -- reward, reward_…, completion_tokens, turns, tool_calls, truncated or error
    trajectories integer not null,     -- how many have a value
    total real,                        -- the sum of their values
    mean real generated always as (total / trajectories) virtual -- the mean of their values
) strict;

-- What could not be read, or in part only, and why. A file that is left aside for a known reason, such as metrics beside rollouts, has a row that says why, and shards.problems = 0.
create table problems (
    id integer primary key,            -- the row's number
    shard_id integer not null references shards(id), -- the file
    line integer,                      -- the line, counted from 1
    byte_offset integer,               -- where it starts, in the uncompressed bytes
    byte_length integer,               -- how many bytes it has
    reason text not null               -- what is wrong with it
) strict;
"""

INDEXES = """
create unique index runs_root on runs(root);
create unique index steps_key on steps(run_id, ifnull(step, -1), ifnull(split, ''));
create unique index shards_path on shards(run_id, path);
create unique index prompts_key on prompts(key, task);
create unique index prompt_groups_key
    on prompt_groups(run_id, ifnull(step, -1), ifnull(split, ''), ifnull(env, ''), prompt_id, ifnull(group_id, ''));
create index prompt_groups_prompt on prompt_groups(prompt_id);
create index prompt_groups_step on prompt_groups(run_id, step, split);
create index prompt_groups_bucket on prompt_groups(pass_bucket);
create index prompt_groups_env on prompt_groups(env);
create index prompt_groups_split on prompt_groups(split);
create index prompt_groups_zero_variance on prompt_groups(zero_variance);
create unique index trajectories_uid on trajectories(run_id, uid);
create index trajectories_group on trajectories(prompt_group_id);
create index trajectories_step on trajectories(run_id, step, split, success);
create index trajectories_shard on trajectories(shard_id);
create index trajectories_env on trajectories(env);
create index trajectories_split on trajectories(split);
create index trajectories_success on trajectories(success);
create index trajectories_stop on trajectories(stop_condition);
create index trajectories_error on trajectories(error_type);
create index trajectories_episode on trajectories(episode_id);
create index trajectories_tools on trajectories(run_id, step, split, env, tools, success) where tools is not null;
create index annotations_uid on annotations(run_id, uid);
create index annotations_trajectory on annotations(trajectory_id);
create index annotations_shard on annotations(shard_id);
create index problems_shard on problems(shard_id);
-- A facet counts by reading one index from end to end, so these hold what people filter by as well.
create index step_values_step on step_values(run_id, step, split);
create index prompt_groups_pass_rate on prompt_groups(pass_rate, run_id, split, env, step, zero_variance);
create index trajectories_group_pass_rate
    on trajectories(group_pass_rate, run_id, split, env, success, step, stop_condition);
"""
