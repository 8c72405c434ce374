//! A cache by stretches of common content, at a cost that does not grow with their length.
//!
//! Contents form a tree: a node is a segment after everything before it. Who uses a node uses it from its beginning, so its blocks in use are its first
//! ones, and those that stand in line are the rest, the later ones before the earlier. A node's place in the line is therefore a few runs of blocks, and
//! finding, taking and giving up a prompt costs as much as it has segments. Block by block it comes to the same ([`crate::blocks`]).

use std::collections::{BTreeMap, VecDeque};

use crate::limits::{Kv, Rooms};
use crate::request::Content;

const NONE: u32 = u32::MAX;

/// Blocks of one pool.
#[derive(Clone, Debug)]
pub(crate) struct SegmentPool {
    kv: Kv,
    cached: bool,
    /// Blocks that can be taken.
    free: u64,
    /// The line of blocks to be taken: runs, linked both ways.
    runs: Vec<Run>,
    spare_runs: Vec<u32>,
    head: u32,
    tail: u32,
    nodes: Vec<Node>,
    spare_nodes: Vec<u32>,
    by_name: BTreeMap<(u32, u64), u32>,
}

/// Blocks that stand in line together, to be taken from the last.
#[derive(Clone, Copy, Debug)]
struct Run {
    /// Whose content they have; none where nobody can find it.
    node: u32,
    /// Stretches of the node before them.
    low: u64,
    blocks: u64,
    before: u32,
    after: u32,
}

/// A segment after everything before it.
#[derive(Clone, Debug)]
struct Node {
    parent: u32,
    id: u64,
    /// Leading stretches of it that are there.
    there: u64,
    users: Users,
    /// Its runs in the line, the first to be taken first.
    runs: VecDeque<u32>,
    children: u32,
}

/// Sequences by how many leading stretches of a node they use, in order: (stretches, sequences). Most use all of it, so these are few.
#[derive(Clone, Debug, Default)]
struct Users(Vec<(u64, u32)>);

impl Users {
    fn deepest(&self) -> u64 {
        self.0.last().map_or(0, |(depth, _)| *depth)
    }

    fn join(&mut self, depth: u64) {
        match self.0.binary_search_by_key(&depth, |(depth, _)| *depth) {
            Ok(at) => self.0[at].1 += 1,
            Err(at) => self.0.insert(at, (depth, 1)),
        }
    }

    fn leave(&mut self, depth: u64) {
        if let Ok(at) = self.0.binary_search_by_key(&depth, |(depth, _)| *depth) {
            self.0[at].1 -= 1;
            if self.0[at].1 == 0 {
                self.0.remove(at);
            }
        }
    }
}

/// What a sequence uses by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hold {
    /// Nodes of its content, in order.
    path: Vec<Use>,
    /// Leading stretches it uses by name.
    pub(crate) named: u64,
    /// Whether somebody else had the same content first: then nothing further is named.
    stopped: bool,
}

/// A sequence's use of a node.
#[derive(Clone, Copy, Debug)]
struct Use {
    node: u32,
    /// Stretches of the prompt before the end of the segment.
    end: u64,
    /// Leading stretches of the node that it uses.
    depth: u64,
}

/// What is there of a content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hit {
    /// Leading stretches.
    pub(crate) stretches: u64,
    /// Blocks of them that stand in line.
    pub(crate) in_line: u64,
}

impl SegmentPool {
    pub(crate) fn new(kv: Kv, cached: bool) -> Self {
        let mut pool = Self {
            kv,
            cached,
            free: 0,
            runs: Vec::new(),
            spare_runs: Vec::new(),
            head: NONE,
            tail: NONE,
            nodes: Vec::new(),
            spare_nodes: Vec::new(),
            by_name: BTreeMap::new(),
        };
        pool.give(kv.blocks);
        pool
    }

    pub(crate) fn free(&self) -> u64 {
        self.free
    }

    /// What is there of a content, up to so many stretches. `own` is what its rest is called.
    pub(crate) fn look_up(&self, content: Option<&Content>, own: Option<u64>, most: u64) -> Hit {
        let mut hit = Hit::default();
        if !self.cached {
            return hit;
        }
        let mut parent = NONE;
        for Part { id, first, end } in parts(content, own, self.kv.block_tokens) {
            let Some(&index) = self.by_name.get(&(parent, id)) else { break };
            let node = &self.nodes[index as usize];
            let found = node.there.min(most.saturating_sub(first)).min(end - first);
            hit.stretches += found;
            hit.in_line += found.saturating_sub(node.users.deepest()) * self.kv.full;
            if first + found < end {
                break;
            }
            parent = index;
        }
        hit
    }

    /// A sequence that held nothing begins with the first `hit` stretches of a content.
    pub(crate) fn open(
        &mut self,
        hold: &mut Hold,
        content: Option<&Content>,
        own: Option<u64>,
        hit: u64,
    ) {
        if !self.cached {
            return;
        }
        hold.named = hit;
        for part in parts(content, own, self.kv.block_tokens) {
            self.extend(hold, part);
        }
    }

    /// A sequence that is about to give everything up will want to find its own rest again.
    pub(crate) fn remember(&mut self, hold: &mut Hold, content: Option<&Content>, own: u64) {
        if self.cached
            && let Some(part) = parts(content, Some(own), self.kv.block_tokens).last()
        {
            self.extend(hold, part);
        }
    }

    fn extend(&mut self, hold: &mut Hold, Part { id, first, end }: Part) {
        let node = self.node(hold.path.last().map_or(NONE, |last| last.node), id);
        let depth = hold.named.saturating_sub(first).min(end - first);
        self.join(node, depth);
        hold.path.push(Use { node, end, depth });
    }

    fn node(&mut self, parent: u32, id: u64) -> u32 {
        if let Some(&index) = self.by_name.get(&(parent, id)) {
            return index;
        }
        let node = Node {
            parent,
            id,
            there: 0,
            users: Users::default(),
            runs: VecDeque::new(),
            children: 0,
        };
        let index = match self.spare_nodes.pop() {
            Some(index) => {
                self.nodes[index as usize] = node;
                index
            }
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        if parent != NONE {
            self.nodes[parent as usize].children += 1;
        }
        self.by_name.insert((parent, id), index);
        index
    }

    /// Another sequence uses the first stretches of a node: what of them stood in line is taken out of it.
    fn join(&mut self, index: u32, depth: u64) {
        let full = self.kv.full;
        let node = &mut self.nodes[index as usize];
        let mut more = depth.saturating_sub(node.users.deepest());
        node.users.join(depth);
        self.free -= more * full;
        while more > 0 {
            // The lowest run is the last.
            let run_index = *self.nodes[index as usize].runs.back().expect("it stands in line");
            let run = &mut self.runs[run_index as usize];
            let taken = more.min(run.blocks / full);
            run.low += taken;
            run.blocks -= taken * full;
            more -= taken;
            if run.blocks < full {
                self.nodes[index as usize].runs.pop_back();
                if run.blocks == 0 {
                    self.unlink(run_index);
                } else {
                    run.node = NONE;
                }
            }
        }
    }

    /// A sequence's leading stretches are known up to so many: they get a name, unless others have it.
    pub(crate) fn name(&mut self, hold: &mut Hold, stretches: u64) {
        if hold.stopped {
            return;
        }
        for Use { node, end, depth } in &mut hold.path {
            let node = &mut self.nodes[*node as usize];
            let until = stretches.min(*end);
            if hold.named < until {
                if node.there > *depth {
                    hold.stopped = true;
                    return;
                }
                node.users.leave(*depth);
                *depth += until - hold.named;
                node.users.join(*depth);
                node.there = *depth;
                hold.named = until;
            }
            if hold.named < *end {
                return;
            }
        }
    }

    /// Takes blocks from the line; there are as many.
    pub(crate) fn take(&mut self, mut blocks: u64) {
        self.free -= blocks;
        if !self.cached {
            return;
        }
        while blocks > 0 {
            let index = self.head;
            let run = &mut self.runs[index as usize];
            let taken = blocks.min(run.blocks);
            run.blocks -= taken;
            blocks -= taken;
            let (node, low, left) = (run.node, run.low, run.blocks);
            if left == 0 {
                self.unlink(index);
            }
            if node == NONE {
                continue;
            }
            let owner = &mut self.nodes[node as usize];
            owner.there = low + left / self.kv.full;
            if left < self.kv.full {
                owner.runs.pop_front();
                if left > 0 {
                    self.runs[index as usize].node = NONE;
                }
            }
            self.forget(node);
        }
    }

    /// Gives up blocks that are not full, which are taken first of all.
    fn give_first(&mut self, blocks: u64) {
        self.free += blocks;
        if !self.cached || blocks == 0 {
            return;
        }
        if self.head != NONE && self.runs[self.head as usize].node == NONE {
            self.runs[self.head as usize].blocks += blocks;
            return;
        }
        let head = self.head;
        let index = self.run(Run { node: NONE, low: 0, blocks, before: NONE, after: head });
        match head {
            NONE => self.tail = index,
            head => self.runs[head as usize].before = index,
        }
        self.head = index;
    }

    /// Gives up blocks that nobody can find.
    pub(crate) fn give(&mut self, blocks: u64) {
        self.free += blocks;
        if !self.cached || blocks == 0 {
            return;
        }
        if self.tail != NONE && self.runs[self.tail as usize].node == NONE {
            self.runs[self.tail as usize].blocks += blocks;
            return;
        }
        self.line_up(NONE, 0, blocks);
    }

    fn line_up(&mut self, node: u32, low: u64, blocks: u64) -> u32 {
        let tail = self.tail;
        let index = self.run(Run { node, low, blocks, before: tail, after: NONE });
        match tail {
            NONE => self.head = index,
            tail => self.runs[tail as usize].after = index,
        }
        self.tail = index;
        index
    }

    fn run(&mut self, run: Run) -> u32 {
        match self.spare_runs.pop() {
            Some(index) => {
                self.runs[index as usize] = run;
                index
            }
            None => {
                self.runs.push(run);
                (self.runs.len() - 1) as u32
            }
        }
    }

    fn unlink(&mut self, index: u32) {
        let Run { before, after, .. } = self.runs[index as usize];
        match before {
            NONE => self.head = after,
            before => self.runs[before as usize].after = after,
        }
        match after {
            NONE => self.tail = before,
            after => self.runs[after as usize].before = before,
        }
        self.spare_runs.push(index);
    }

    /// A sequence with these rooms gives up everything, from its end; so many of its stretches are full of tokens.
    pub(crate) fn close(&mut self, hold: &mut Hold, rooms: Rooms, whole: u64) {
        let (full, held) = (self.kv.full, self.kv.held(rooms));
        if !self.cached {
            self.free += held;
            return;
        }
        let whole = whole.min(rooms.filled).max(hold.named);
        self.give(held - rooms.filled * full);
        self.give_first((rooms.filled - whole) * full);
        self.give((whole - hold.named) * full);
        for Use { node: index, depth, .. } in hold.path.drain(..).rev() {
            let node = &mut self.nodes[index as usize];
            let before = node.users.deepest();
            node.users.leave(depth);
            let used = node.users.deepest();
            if used < before {
                self.free += (before - used) * full;
                let run = self.line_up(index, used, (before - used) * full);
                self.nodes[index as usize].runs.push_back(run);
            }
            self.forget(index);
        }
        (hold.named, hold.stopped) = (0, false);
    }

    /// A node of which nothing is there, and which nobody needs, goes.
    fn forget(&mut self, mut index: u32) {
        while index != NONE {
            let node = &self.nodes[index as usize];
            if node.there > 0 || !node.users.0.is_empty() || node.children > 0 {
                return;
            }
            let parent = node.parent;
            self.by_name.remove(&(parent, node.id));
            self.spare_nodes.push(index);
            if parent != NONE {
                self.nodes[parent as usize].children -= 1;
            }
            index = parent;
        }
    }
}

/// A segment in the place it has in a prompt.
struct Part {
    id: u64,
    /// Stretches of the prompt before its first, and before its end: a stretch belongs to where its last token is.
    first: u64,
    end: u64,
}

/// The parts of a prompt, its own rest last.
fn parts(
    content: Option<&Content>,
    own: Option<u64>,
    block_tokens: u64,
) -> impl Iterator<Item = Part> + '_ {
    let shared = content.into_iter().flat_map(|c| &c.shared).map(|s| (s.id, s.tokens));
    shared.chain(own.map(|id| (id, u64::MAX))).scan(0u64, move |tokens, (id, length)| {
        let first = *tokens / block_tokens;
        *tokens = tokens.saturating_add(length);
        Some(Part { id, first, end: *tokens / block_tokens })
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::blocks::{BlockPool, Table, block_names};
    use crate::request::{Segment, nameless};

    /// A sequence in both pools.
    struct Both {
        serial: u64,
        content: Content,
        computed: u64,
        table: Table,
        hold: Hold,
        rooms: Rooms,
    }

    #[derive(Clone, Debug)]
    enum Deed {
        /// Somebody comes with the first segments of a family, and so many tokens of its own.
        Come { family: u64, segments: usize, own: u64, remembered: bool },
        /// One of those that are there reads or writes so many tokens.
        Grow { who: usize, tokens: u64 },
        /// One of them leaves.
        Go { who: usize },
    }

    fn deeds() -> impl Strategy<Value = Vec<Deed>> {
        let come = (0u64..3, 0usize..4, 0u64..30, any::<bool>()).prop_map(
            |(family, segments, own, remembered)| Deed::Come { family, segments, own, remembered },
        );
        let grow = (0usize..6, 1u64..40).prop_map(|(who, tokens)| Deed::Grow { who, tokens });
        let go = (0usize..6).prop_map(|who| Deed::Go { who });
        prop::collection::vec(prop_oneof![3 => come, 3 => grow, 2 => go], 1..60)
    }

    fn family(family: u64, segments: usize) -> Vec<Segment> {
        (0..segments as u64)
            .map(|i| Segment { id: family * 10 + i, tokens: 1 + (family * 7 + i * 11) % 19 })
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(plimsoll_testkit::cases(10_000)) })]

        /// By segments or block by block: as many blocks are free, and as much of every content is there, after whatever was done.
        #[test]
        fn as_block_by_block(deeds in deeds(), blocks in 8u64..60, block_tokens in 1u64..6, full in 1u64..3) {
            let kv = Kv { full, ..Kv::new(blocks, block_tokens) };
            let (mut plain, mut fast) = (BlockPool::new(kv, true), SegmentPool::new(kv, true));
            let mut there: Vec<Both> = Vec::new();
            for (serial, deed) in deeds.iter().enumerate() {
                match deed {
                    Deed::Come { family: f, segments, own, remembered } => {
                        let shared = family(*f, *segments);
                        let content = Content { shared, own: remembered.then_some(100 + *f) };
                        let tokens = content.shared.iter().map(|s| s.tokens).sum::<u64>() + own;
                        let most = tokens.saturating_sub(1) / block_tokens;
                        let serial = serial as u64;
                        let names = block_names(Some(&content), serial, most, block_tokens);
                        let (hit, in_line) = plain.look_up(&names);
                        let found = fast.look_up(Some(&content), content.own, most);
                        prop_assert_eq!((hit, in_line), (found.stretches, found.in_line));
                        let table = plain.open(&names, hit);
                        let mut hold = Hold::default();
                        fast.open(&mut hold, Some(&content), content.own, hit);
                        let rooms = Rooms { filled: hit, skipped: 0 };
                        there.push(Both { serial, content, computed: hit * block_tokens, table, hold, rooms });
                    }
                    Deed::Grow { who, tokens } => {
                        let Some(own) = there.get_mut(*who) else { continue };
                        let end = own.computed + tokens;
                        let rooms = kv.rooms(own.computed, end);
                        let need = kv.held(rooms) - kv.held(own.rooms);
                        let room = need <= fast.free();
                        prop_assert_eq!(plain.grow(&mut own.table, own.computed, end), room);
                        if !room {
                            continue;
                        }
                        fast.take(need);
                        (own.rooms, own.computed) = (rooms, end);
                        let names = block_names(Some(&own.content), own.serial, end / block_tokens, block_tokens);
                        plain.name(&mut own.table, &names);
                        fast.name(&mut own.hold, end / block_tokens);
                    }
                    Deed::Go { who } => {
                        if *who >= there.len() {
                            continue;
                        }
                        let mut own = there.remove(*who);
                        if own.content.own.is_none() && own.serial.is_multiple_of(2) {
                            fast.remember(&mut own.hold, Some(&own.content), nameless(own.serial));
                        }
                        let whole = own.computed / block_tokens;
                        fast.name(&mut own.hold, whole);
                        plain.close(own.table, whole);
                        fast.close(&mut own.hold, own.rooms, whole);
                    }
                }
                prop_assert_eq!(plain.free(), fast.free());
                for f in 0..3 {
                    let content = Content { shared: family(f, 4), own: Some(100 + f) };
                    let names = block_names(Some(&content), 0, 60, block_tokens);
                    let found = fast.look_up(Some(&content), content.own, 60);
                    prop_assert_eq!(plain.look_up(&names), (found.stretches, found.in_line));
                }
            }
            for mut own in there {
                plain.close(own.table, own.computed / block_tokens);
                fast.close(&mut own.hold, own.rooms, own.computed / block_tokens);
            }
            prop_assert_eq!((plain.free(), fast.free()), (blocks, blocks));
        }
    }
}
