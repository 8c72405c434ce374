//! Fleets searched: what to rent where, how many replicas, and floors by the hour.
//!
//! **Owns** the fleet programme (pools that share nodes in regions with quotas and price modes), the search for the least replicas that hold, and floors that a
//! schedule can keep. **Refuses** files, printing, defaults, demand modelling and simulating: what a replica carries is a number it is given.
//!
//! [`solve`] relaxes a [`Programme`] to a linear one, which gives a bound that no fleet can beat. It then rounds, repairs and improves whole fleets until one is
//! close to the bound, or until the [`Effort`] is spent. Effort is counted, never timed, so the same programme gives the same answer everywhere. A programme
//! without an answer says what would have to give. [`least`] brackets a number by asking a question that chance blurs. [`Floors`] turns needs by the hour into few
//! windows.
//!
//! ```
//! use plimsoll_plan::{Effort, Mode, Need, Offer, Outcome, Place, Programme, Way, solve};
//!
//! // Replicas of two devices carry 10 each; four of them share a node of eight.
//! let programme = Programme {
//!     regions: 1,
//!     modes: vec![Mode { name: "on-demand".to_owned(), share_most: None }],
//!     places: vec![Place {
//!         region: 0,
//!         accelerator: 0,
//!         devices_per_node: 8,
//!         devices_most: Some(16),
//!         offers: vec![Offer {
//!             mode: 0,
//!             node_hour: "$55/h".parse()?,
//!             nodes_most: None,
//!             nodes_least: 0,
//!         }],
//!     }],
//!     pools: vec![Need {
//!         demand: vec![55.0],
//!         reaches: vec![vec![true]],
//!         reserve: 1,
//!         lost: None,
//!         replicas_least: 0,
//!         replicas_most: None,
//!     }],
//!     ways: vec![Way { pool: 0, place: 0, devices: 2, capacity: 10.0 }],
//! };
//! let Outcome::Found(answer) = solve(&programme, Effort { lps: 100, tries: 100, gap: 0.0 })? else {
//!     panic!("there is room");
//! };
//! // Six carry the load and one is in reserve: 14 devices, two nodes.
//! assert_eq!((answer.placed[0].load, answer.placed[0].reserve), (6, 1));
//! assert_eq!(answer.rented[0].nodes, 2);
//! assert_eq!(answer.cost.to_string(), "$110.00/h");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod floors;
mod programme;
mod search;

pub use floors::{Days, Floors, Window};
pub use programme::{
    Answer, Breach, Effort, Excepted, Loss, Mistake, Mode, Need, Offer, Outcome, Place, Placed,
    Programme, Relaxation, Rented, Stranded, Way, Why, Work, check, relaxed, solve,
};
pub use search::{Bracket, Reply, least};
