//! The layers of the embedded scheduler under the paths that they had when they were one package:
//! re-exports, nothing of its own. New code uses the packages themselves.

pub use kubestep_api as api;
pub use kubestep_api::intern;
pub use kubestep_config as config;

pub mod engine {
    //! Framework, plugins and scheduler.

    pub use kubestep_framework::node::ports;
    pub use kubestep_framework::objects::{extended_resources, shards};
    pub use kubestep_framework::pod::{class as pod_class, conditions, requests};
    pub use kubestep_framework::record::{column, scores};
    pub use kubestep_framework::resource::amount;
    pub use kubestep_framework::runtime::stopwatch;
    pub use kubestep_framework::snapshot::{pod_index, topology};
    pub use kubestep_framework::{
        extender, go_sort, host, node, objects, pod, pod_groups, preemption, record, resource,
        snapshot, status, tie_break,
    };
    pub use kubestep_plugins as plugins;
    pub use kubestep_scheduler as scheduler;
    pub use kubestep_scheduler::{cache, queue};

    pub mod dra {
        //! Allocation of devices.

        pub use kubestep_cel as cel;
        pub use kubestep_framework::dra::*;
        pub use kubestep_plugins::dynamic_resources::structured::*;
    }

    pub mod framework {
        //! What a plugin is, and how plugins are run.

        pub use kubestep_framework::pod::nominated;
        pub use kubestep_framework::pod_groups::placement;
        pub use kubestep_framework::runtime::{binding, filter, scoring};
        pub use kubestep_framework::status::node_statuses;
        pub use kubestep_framework::{cycle_state, events, plugin, registry, runtime, shared};
    }

    pub mod holds {
        //! Holds at Permit.

        pub use kubestep_framework::record::intervention::HOLD;
        pub use kubestep_scheduler::interventions::holds::*;
    }

    pub mod interventions {
        //! What a person decides in the scheduler's place.

        pub use kubestep_framework::record::intervention::{FAILING_POINTS, FAULT, Intervention};
        pub use kubestep_scheduler::interventions::{Interventions, Standing};
    }

    #[cfg(feature = "testing")]
    pub mod testing {
        //! Small clusters and profiles for tests.

        pub use kubestep_framework::testing::*;
        pub use kubestep_plugins::testing::*;
    }

    pub mod volumes {
        //! What the volume plugins share.

        pub use kubestep_framework::shared::assumed_volumes as assumed;
        pub use kubestep_plugins::volumes::*;
    }
}
