//! The statements, as the session sends them, and their answers.

use crate::state::{D, H, Lanes};

/// A statement with its parameters, named as its text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Stmt {
    InsertSession {
        handlers: u8,
        fresh: bool,
    },
    TouchSession {
        turn: u8,
        wants: bool,
        reread: bool,
    },
    Shares,
    Take {
        turn: u8,
        counts: [u8; H],
        no: u8,
    },
    HandBack {
        turn: u8,
        lanes: Lanes,
        no: u8,
    },
    Turn(Turn),
    Settle {
        turn: u8,
        running: u8,
        rescheduled: u8,
        buried: u8,
        released: u8,
        claims: [u8; D],
    },
    /// `lock_own` and all of `close_session`.
    Close {
        turn: u8,
    },
}

/// A turn; without lanes it is `settle_turn`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Turn {
    pub(crate) turn: u8,
    /// The session's number; only a wrong statement looks at it.
    pub(crate) no: u8,
    pub(crate) running: u8,
    pub(crate) done: u8,
    pub(crate) claims: [u8; D],
    /// Deliveries behind the end of a run that ended early.
    pub(crate) dropped: u8,
    pub(crate) record: bool,
    pub(crate) renew: bool,
    pub(crate) lanes: Lanes,
    /// Deliveries of keys that are in hand.
    pub(crate) busy: u8,
    /// What ended of keys that go on behind it.
    pub(crate) goes_on: u8,
    /// What it read, when it reads and writes apart.
    pub(crate) read: Option<u8>,
}

/// What a statement answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Answer {
    /// The session's number.
    Number(u8),
    NoNumber,
    SessionLost,
    Ok,
    Seen {
        mine: Lanes,
        free: [u8; H],
        workers: [u8; H],
        wanting: u8,
        unwanted: u8,
    },
    Taken {
        changed: u8,
        mine: Lanes,
    },
    Turned {
        done: u8,
        gone: u8,
        picks: u8,
        claims: [u8; D],
    },
    Settled {
        applied: u8,
    },
}

impl Stmt {
    /// Its number; 0 for those that have none.
    pub(crate) fn turn(&self) -> u8 {
        match self {
            Self::InsertSession { .. } | Self::Shares => 0,
            Self::TouchSession { turn, .. }
            | Self::Take { turn, .. }
            | Self::HandBack { turn, .. }
            | Self::Settle { turn, .. }
            | Self::Close { turn } => *turn,
            Self::Turn(turn) => turn.turn,
        }
    }

    pub(crate) fn number(&mut self, number: u8) {
        match self {
            Self::InsertSession { .. } | Self::Shares => {}
            Self::TouchSession { turn, .. }
            | Self::Take { turn, .. }
            | Self::HandBack { turn, .. }
            | Self::Settle { turn, .. }
            | Self::Close { turn } => *turn = number,
            Self::Turn(turn) => turn.turn = number,
        }
    }

    /// A place among statements of the same number.
    pub(crate) fn order(&self) -> u8 {
        match self {
            Self::InsertSession { .. } => 0,
            Self::TouchSession { .. } => 1,
            Self::Shares => 2,
            Self::Take { .. } => 3,
            Self::HandBack { .. } => 4,
            Self::Turn(_) => 5,
            Self::Settle { .. } => 6,
            Self::Close { .. } => 7,
        }
    }

    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::InsertSession { .. } => "insert_session",
            Self::TouchSession { .. } => "touch_session",
            Self::Shares => "shares",
            Self::Take { .. } => "take",
            Self::HandBack { .. } => "hand_back",
            Self::Turn(turn) if turn.lanes == [0; H] => "settle_turn",
            Self::Turn(_) => "turn",
            Self::Settle { .. } => "settle",
            Self::Close { .. } => "close_session",
        }
    }
}
