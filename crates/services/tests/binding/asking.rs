//! What one asks of estimators, question by question: who is asked beside whom, over which connection, and who is given up.

use crate::estimating::{hung, listener, nowhere, story};
use crate::serving::Serving;
use crate::world::PATIENCE;
use kube::Client;
use loadline_apiserver::ApiServer;
use loadline_services::cluster::Connection;
use loadline_services::ctx::Clock;
use loadline_services::estimator::server::Options as Serve;
use loadline_services::fleet::estimators::{self, Addresses, Estimators, Question};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Whoever asks estimators at these addresses. The hub is asked for none.
fn asking(addresses: Addresses, timeout: Duration) -> (Estimators, mpsc::Receiver<Arc<str>>) {
    let hub = Connection::new(Client::new(ApiServer::default(), "default"));
    // Nothing is used again: each question is asked.
    let options =
        estimators::Options { addresses, timeout, fresh: Duration::ZERO, ..estimators::Options::default() };
    Estimators::new(options, hub, estimators::Metrics::default(), Clock::default())
}

fn shared(address: SocketAddr) -> Addresses {
    Addresses { shared: Some(address.to_string()), ..Addresses::default() }
}

#[tokio::test]
async fn all_are_asked_at_once_and_none_waits_for_another() {
    let names = ["a", "b", "c", "d", "e"];
    let (mut fixed, mut connections) = (std::collections::BTreeMap::new(), Vec::new());
    for name in names {
        let (address, count) = listener(hung).await;
        fixed.insert(name.to_owned(), address.to_string());
        connections.push(count);
    }
    // None of them ever answers, and nobody gives up within the test: who is asked after another one is not asked at all.
    let (asking, _recovered) = asking(Addresses { fixed, ..Addresses::default() }, 10 * PATIENCE);
    let question = tokio::spawn(async move {
        let clusters = names.map(Arc::<str>::from);
        asking.ask(&clusters, &Question::default()).await
    });
    let asked = async {
        while connections.iter().any(|count| count.load(Ordering::Relaxed) == 0) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, asked).await.unwrap_or_else(|_| panic!("{connections:?}"));
    question.abort();
}

/// Passes on whatever comes, and counts the connections it comes over.
async fn between(address: SocketAddr) -> (SocketAddr, Arc<AtomicUsize>) {
    let listening = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (here, count) = (listening.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
    let counted = count.clone();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listening.accept().await {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(async move {
                let mut there = TcpStream::connect(address).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut stream, &mut there).await;
            });
        }
    });
    (here, count)
}

#[tokio::test]
async fn one_that_answers_is_asked_over_one_connection_however_often() {
    let serving = Serving::start(&story(), Serve::default()).await;
    let (address, connections) = between(serving.address).await;
    let (asking, _recovered) = asking(shared(address), PATIENCE);
    let (clusters, question) = ([Arc::<str>::from("a")], Question::default());
    // Twenty at once, while there is no connection yet, and twenty one after the other.
    let at_once = (0..20).map(|_| asking.ask(&clusters, &question));
    let mut said = futures::future::join_all(at_once).await.concat();
    for _ in 0..20 {
        said.extend(asking.ask(&clusters, &question).await);
    }
    let counts = said.iter().filter(|one| matches!(one.opinion, loadline_core::divide::Opinion::Count(_)));
    assert_eq!((said.len(), counts.count()), (40, 40), "{said:?}");
    assert_eq!(connections.load(Ordering::Relaxed), 1);
    drop(asking);
    serving.end().await;
}

#[tokio::test]
async fn one_whose_waiting_replicas_are_asked_for_while_it_is_away_is_noticed_when_it_is_back() {
    let address = nowhere().await;
    let (asking, mut recovered) = asking(shared(address), Duration::from_secs(3));
    let (a, question) = (Arc::<str>::from("a"), Question::default());
    for _ in 0..3 {
        asking.ask(&[Arc::clone(&a)], &question).await;
    }
    // It has been left alone for long enough, and whoever asks next is the descheduler.
    pass(Duration::from_mins(2)).await;
    let threshold = Duration::from_mins(5);
    asking.waiting(&a, &question.about, threshold).await.expect_err("nobody is there");
    let members = story();
    let metrics = loadline_services::ctx::Metrics::default();
    let counts = loadline_services::estimator::metrics::Metrics::new(&members, &metrics);
    let router = loadline_services::estimator::server::routes(members, Serve::default(), counts);
    let listening = loadline_services::serve::listen(address, None, false).await.unwrap();
    let stop = tokio_util::sync::CancellationToken::new();
    tokio::spawn(loadline_services::serve::run(listening, router, stop.clone()));
    pass(Duration::from_mins(2)).await;
    asking.probe();
    assert_eq!(timeout(PATIENCE, recovered.recv()).await, Ok(Some(a)));
    stop.cancel();
}

/// So much time passes, at once.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}
