//! A state as text, for the end of a trace.

use std::fmt;

use crate::state::{Hold, Life, Row, State, Tx};

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "     rows:")?;
        for (place, delivery) in self.deliveries.iter().enumerate() {
            if delivery.row != Row::Done || self.workers.iter().any(|worker| worker.held[place] != Hold::Free) {
                write!(f, " d{} {:?} claims {}", place + 1, delivery.row, delivery.claims)?;
                if delivery.tx != Tx::None {
                    write!(f, " in a transaction")?;
                }
                write!(f, ";")?;
            }
        }
        write!(f, "\n     lanes: {:?}", self.owners)?;
        for row in &self.sessions {
            write!(f, "\n     session W{}.{}", (row.owner - 1) / 32 + 1, (row.owner - 1) % 32)?;
            write!(f, " no {} turn {} in flight {:?}", row.no, row.turn, Set(row.in_flight))?;
            write!(f, " lock {:?}{}", row.lock, if row.expired { " expired" } else { "" })?;
        }
        for (place, worker) in self.workers.iter().enumerate().filter(|(_, worker)| worker.life != Life::Gone) {
            write!(f, "\n     W{}.{} {:?}", place + 1, worker.incarnation, worker.life)?;
            write!(f, " {}", if worker.valid { "valid" } else { "past its deadline" })?;
            write!(f, " lanes {:?} leaving {:?}", worker.mask, worker.leaving)?;
            write!(f, "{}", if worker.unsure { " unsure" } else { "" })?;
            write!(f, "{}", if worker.dirty { " dirty" } else { "" })?;
            for (delivery, hold) in worker.held.iter().enumerate().filter(|(_, hold)| **hold != Hold::Free) {
                write!(f, " d{} {hold:?} by claims {}", delivery + 1, worker.claims[delivery])?;
            }
            if worker.orphans != 0 {
                write!(f, " orphans {:?}", Set(worker.orphans))?;
            }
            if let Some(out) = &worker.out {
                write!(f, " on its way: {}", out.stmt.name())?;
            }
        }
        for (owner, stmt) in &self.late {
            write!(f, "\n     late of W{}.{}: {}", (owner - 1) / 32 + 1, (owner - 1) % 32, stmt.name())?;
        }
        Ok(())
    }
}

struct Set(u8);

impl fmt::Debug for Set {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(crate::config::bits(self.0).map(|place| place + 1)).finish()
    }
}
