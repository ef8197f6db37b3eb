//! One form for states that differ only in how far the numbers of statements have counted, or in the order of lists.
//!
//! Of a session's numbers only their order matters: its row's, those of its late statements, and that of the one on its way.
//! 0 stays the number of a row that no statement has found yet.

use crate::config::{Config, bits};
use crate::state::{Owner, State, W, worker_of};
use crate::statement::{Stmt, Turn};

impl State {
    /// The same state with numbers of statements as ranks, and the lists in order.
    pub(crate) fn settle_down(&mut self, config: &Config) {
        if config.mutants.is_empty() {
            self.forget_late();
        }
        self.sessions.sort_unstable_by_key(|row| (row.owner, row.no));
        self.late.sort_unstable_by_key(|(owner, stmt)| (*owner, stmt.turn(), stmt.order()));
        let mut ranked: u128 = 0;
        for place in 0..W {
            let owner = self.owner(place);
            ranked |= 1 << owner;
            self.rank(owner);
        }
        for place in 0..self.sessions.len() + self.late.len() {
            let owner = match self.sessions.get(place) {
                Some(row) => row.owner,
                None => self.late[place - self.sessions.len()].0,
            };
            if ranked & (1 << owner) == 0 {
                ranked |= 1 << owner;
                self.rank(owner);
            }
        }
    }

    /// Late statements that can change nothing any more: their number has been passed or their row is gone, neither of which
    /// comes back, and what they complete stands under other claims.
    fn forget_late(&mut self) {
        let mut late = std::mem::take(&mut self.late);
        late.retain(|(owner, stmt)| {
            let fits = self.row(*owner).is_some_and(|row| row.turn < stmt.turn());
            let completes = |place: usize, turn: &Turn| {
                let delivery = &self.deliveries[place];
                delivery.is_live() && delivery.claims == turn.claims[place]
            };
            match stmt {
                Stmt::InsertSession { .. } => true,
                Stmt::Turn(turn) => fits || bits(turn.done).any(|place| completes(place, turn)),
                _ => fits,
            }
        });
        self.late = late;
    }

    fn rank(&mut self, owner: Owner) {
        let mine = self.owner(worker_of(owner)) == owner;
        let worker = &mut self.workers[worker_of(owner)];
        // 0 is the number of a row that no statement has found yet.
        let mut used: u128 = 1;
        for row in self.sessions.iter().filter(|row| row.owner == owner) {
            used |= 1 << row.turn;
        }
        for (_, stmt) in self.late.iter().filter(|(who, _)| *who == owner) {
            used |= 1 << stmt.turn();
        }
        if let Some(out) = worker.out.as_ref().filter(|_| mine) {
            used |= 1 << out.stmt.turn();
        }
        let count = |set: u128| u8::try_from(set.count_ones()).unwrap_or(u8::MAX);
        let rank = |turn: u8| count(used & ((1 << turn) - 1));
        if mine {
            worker.turn = count(used).saturating_sub(1);
            if let Some(out) = &mut worker.out {
                out.stmt.number(rank(out.stmt.turn()));
            }
        }
        for row in self.sessions.iter_mut().filter(|row| row.owner == owner) {
            row.turn = rank(row.turn);
        }
        for (_, stmt) in self.late.iter_mut().filter(|(who, _)| *who == owner) {
            stmt.number(rank(stmt.turn()));
        }
    }
}
