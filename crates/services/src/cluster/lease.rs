//! Does this process lead, and may it write now? Leader election with a Lease, as client-go does it.
//!
//! [`core`](loadline_core::lease) decides; this sends what it says and tells everybody. A component gets a
//! [`Leadership`] and asks it right before each write; an [`Election`] runs beside it.
//!
//! ```no_run
//! # async fn component(client: kube::Client) -> Result<(), Box<dyn std::error::Error>> {
//! use loadline_services::cluster::lease::{Election, Options, identity};
//! use loadline_services::cluster::{Connection, Writer};
//! use tokio_util::sync::CancellationToken;
//!
//! let options = Options::new("loadline-system", "loadline-scheduler");
//! let lock = options.lock(identity()?);
//! let connection = Connection::new(client);
//! let (election, leadership) = Election::new(&connection, options.check(&lock)?, 7);
//! let stop = CancellationToken::new();
//! let running = tokio::spawn(election.run(stop.clone(), |change| println!("{change}")));
//!
//! leadership.acquired().await;
//! let writer = Writer::new(connection, "loadline-scheduler").permitted(leadership.permit());
//! // It writes until leadership.lost().
//! # drop(writer);
//!
//! // When no write is on its way any more: then the next may begin at once.
//! stop.cancel();
//! running.await?;
//! # Ok(())
//! # }
//! ```
//!
//! | question | module |
//! |---|---|
//! | which flags are there, and do they make sense? | `options` |
//! | may I write? | `leadership` |
//! | what is sent, and what is told? | `run` |
//! | how does the record stand in the object? | `object` |

mod leadership;
mod object;
mod options;
mod run;

pub use leadership::{Clock, Figures, Leadership};
pub use options::{Checked, Invalid, Options, identity};
pub use run::{Election, Role, RoleChange};
