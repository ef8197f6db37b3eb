//! Whether the file is still the one that was opened: a store whose file was deleted or replaced would write into a file that
//! has no name any more.

use std::sync::PoisonError;

use relaybus::{Error, Result};

use super::{Inner, options};

impl Inner {
    pub(super) fn remember_file(&self) {
        *self.file.lock().unwrap_or_else(PoisonError::into_inner) = options::identity(&self.path);
    }

    /// As [`Self::check_file`], once it is known which file it was: before a write of the store's own, so that a process without
    /// a dispatcher does not publish into a file that has no name any more. Costs one look at the file system.
    pub(super) fn recheck_file(&self) -> Result<()> {
        let known = self.file.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        if known {
            return self.check_file();
        }
        if options::identity(&self.path).is_none() {
            return Err(Error::configuration(format!(
                "`{}` does not exist yet: call `bus.start()` or `store.setup()` first",
                self.path.display()
            )));
        }
        Ok(())
    }

    /// Notices that the file was deleted or replaced: SQLite would go on with the one that has no name any more.
    pub(super) fn check_file(&self) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let now = options::identity(&self.path);
        match (*file, now) {
            (Some(then), Some(now)) if then == now => Ok(()),
            (None, Some(now)) => {
                *file = Some(now);
                Ok(())
            }
            _ => Err(Error::store(
                format!(
                    "`{}` was deleted or replaced while it was open: stop its processes, put the right file there and start again",
                    self.path.display()
                ),
                None,
            )),
        }
    }
}
