//! A cache block by block: the oracle of [`crate::segments`].

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::limits::{Kv, Rooms};
use crate::request::{Content, nameless};

/// Blocks of one pool, each with its users and the name of its content, as vLLM's pool has them (`v1/core/block_pool.py`).
///
/// A block that nobody uses waits in a line to be taken again, first come first, and until then is found by its content. One that is given up
/// with others of its sequence stands behind those that come after it in the sequence; one that is not full stands before all. Unlike there, a content
/// has one block only: what is computed twice is found once.
#[derive(Clone, Debug)]
pub(crate) struct BlockPool {
    kv: Kv,
    cached: bool,
    users: Vec<u32>,
    /// The content of a full block.
    names: Vec<Option<u64>>,
    /// Blocks by the name of their content, one for each group that keeps every token.
    named: BTreeMap<u64, Vec<usize>>,
    line: VecDeque<usize>,
    /// Where no content is found again, blocks are all alike and only counted.
    loose: u64,
}

/// What a sequence holds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Table {
    /// Blocks of the groups that keep every token, those of one stretch of tokens together.
    full: Vec<Vec<usize>>,
    /// All others.
    others: Vec<usize>,
    /// Leading stretches whose content is known by name.
    named: usize,
    /// Leading stretches that are full, or will be when the step that was decided on is over.
    known: usize,
    /// Where blocks are only counted: what it holds.
    counted: Rooms,
    /// Whether somebody else had named the same content first: then nothing further is named.
    stopped: bool,
}

impl Table {
    pub(crate) fn blocks(&self, kv: &Kv) -> u64 {
        let listed = self.full.iter().map(Vec::len).sum::<usize>() + self.others.len();
        listed as u64 + kv.held(self.counted)
    }
}

/// The name of a block's content: of all tokens up to its end.
pub(crate) fn block_names(
    content: Option<&Content>,
    serial: u64,
    blocks: u64,
    size: u64,
) -> Vec<u64> {
    let own = content.and_then(|c| c.own).unwrap_or_else(|| nameless(serial));
    let mut parts: Vec<(u64, u64)> =
        content.map_or(Vec::new(), |c| c.shared.iter().map(|s| (s.id, s.tokens)).collect());
    parts.push((own, u64::MAX));
    let (mut part, mut offset, mut before) = (0, 0, 0u64);
    let mut names = Vec::new();
    for _ in 0..blocks {
        let mut hasher = DefaultHasher::new();
        before.hash(&mut hasher);
        let mut left = size;
        while left > 0 {
            let (id, tokens) = parts[part];
            let taken = left.min(tokens - offset);
            (id, offset, taken).hash(&mut hasher);
            (left, offset) = (left - taken, offset + taken);
            if offset == tokens {
                (part, offset) = (part + 1, 0);
            }
        }
        before = hasher.finish();
        names.push(before);
    }
    names
}

impl BlockPool {
    pub(crate) fn new(kv: Kv, cached: bool) -> Self {
        let all = if cached { usize::try_from(kv.blocks).unwrap_or(usize::MAX) } else { 0 };
        Self {
            loose: if cached { 0 } else { kv.blocks },
            kv,
            cached,
            users: vec![0; all],
            names: vec![None; all],
            named: BTreeMap::new(),
            line: (0..all).collect(),
        }
    }

    pub(crate) fn free(&self) -> u64 {
        self.line.len() as u64 + self.loose
    }

    /// Stretches of a content that are there, up to so many, and how many blocks of them stand in line.
    pub(crate) fn look_up(&self, names: &[u64]) -> (u64, u64) {
        let found = names.iter().take_while(|name| self.named.contains_key(name));
        let blocks = |name: &u64| self.named[name].iter().filter(|b| self.users[**b] == 0).count();
        found.fold((0, 0), |(n, free), name| (n + 1, free + blocks(name) as u64))
    }

    /// A sequence that begins with the first `hit` stretches of a content.
    pub(crate) fn open(&mut self, names: &[u64], hit: u64) -> Table {
        let mut table = Table::default();
        for name in names.iter().take(hit as usize) {
            let blocks = self.named[name].clone();
            for block in &blocks {
                if self.users[*block] == 0 {
                    self.line.retain(|b| b != block);
                }
                self.users[*block] += 1;
            }
            table.full.push(blocks);
        }
        table.named = table.full.len();
        table
    }

    fn take(&mut self) -> usize {
        let block = self.line.pop_front().expect("there is one");
        if let Some(name) = self.names[block].take() {
            // A stretch is there as a whole or not at all.
            for other in self.named.remove(&name).into_iter().flatten() {
                self.names[other] = None;
            }
        }
        self.users[block] = 1;
        block
    }

    /// Gives a sequence the blocks that take it from `computed` tokens to `end`, where there are enough.
    pub(crate) fn grow(&mut self, table: &mut Table, computed: u64, end: u64) -> bool {
        let kv = self.kv;
        let mut rooms = kv.rooms(computed, end);
        if !self.cached {
            let before = table.counted;
            let kept = Rooms { skipped: rooms.skipped.min(before.filled), ..before };
            rooms.filled = rooms.filled.max(before.filled);
            self.loose += kv.held(before) - kv.held(kept);
            table.counted = kept;
            let need = kv.held(rooms) - kv.held(kept);
            let enough = need <= self.loose;
            if enough {
                self.loose -= need;
                table.counted = rooms;
            }
            return enough;
        }
        // Room that was asked for and not used, for guesses, stays.
        let before = table.full.len() as u64;
        rooms.filled = rooms.filled.max(before);
        // What has left the window is given back before anything is taken.
        if before > 0 && !table.others.is_empty() {
            let kept = kv.windowed(Rooms { filled: before, ..rooms });
            while table.others.len() as u64 > kept {
                let block = table.others.pop().expect("not empty");
                self.give(block);
            }
        }
        let stretches = rooms.filled - before;
        let others = kv.windowed(rooms);
        let need = kv.full * stretches + others - table.others.len() as u64;
        if need > self.free() {
            return false;
        }
        for _ in 0..stretches {
            let blocks = (0..kv.full).map(|_| self.take()).collect();
            table.full.push(blocks);
        }
        while (table.others.len() as u64) < others {
            let block = self.take();
            table.others.push(block);
        }
        true
    }

    /// The tokens of a sequence's leading stretches are known: their blocks get a name, unless another block has it.
    pub(crate) fn name(&mut self, table: &mut Table, names: &[u64]) {
        table.known = table.known.max(names.len());
        if !self.cached || table.stopped {
            return;
        }
        while table.named < names.len() && table.named < table.full.len() {
            let name = names[table.named];
            if self.named.contains_key(&name) {
                table.stopped = true;
                return;
            }
            let blocks = table.full[table.named].clone();
            for block in &blocks {
                self.names[*block] = Some(name);
            }
            self.named.insert(name, blocks);
            table.named += 1;
        }
    }

    fn give(&mut self, block: usize) {
        self.users[block] -= 1;
        if self.users[block] == 0 {
            self.line.push_back(block);
        }
    }

    /// A sequence gives up everything, from its end. What is not full of tokens, so many stretches are, is taken first of all.
    pub(crate) fn close(&mut self, table: Table, whole: u64) {
        self.loose += self.kv.held(table.counted);
        let whole = whole.max(table.known as u64);
        for block in table.others.into_iter().rev() {
            self.give(block);
        }
        for (stretch, blocks) in table.full.into_iter().enumerate().rev() {
            for block in blocks.into_iter().rev() {
                if (stretch as u64) < whole {
                    self.give(block);
                } else {
                    self.users[block] -= 1;
                    self.line.push_front(block);
                }
            }
        }
    }
}
