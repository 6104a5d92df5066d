//! Edits as inputs of a session: they are replayed with it and have the same effect on the same
//! state.

use crate::edit::Edit;
use crate::input::Change;
use kubestep_cluster::World;

impl Change for Edit {
    fn words(&self) -> String {
        self.to_string()
    }

    fn apply(&self, world: &mut World) -> Result<(), String> {
        Edit::apply(self, world).map(|_| ()).map_err(|error| error.to_string())
    }
}
