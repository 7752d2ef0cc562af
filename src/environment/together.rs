//! Futures that run at the same time.
//!
//! `futures-util` compiles its machinery anew for each type of future, which
//! was 3 % of the slim core's download: here it runs boxed futures of one type,
//! each of which leaves its result in a place of its own.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use futures_util::FutureExt as _;
use futures_util::StreamExt as _;
use futures_util::future::LocalBoxFuture;
use futures_util::stream::{self, Buffered, Iter};

type Work<'a> = Box<dyn Iterator<Item = LocalBoxFuture<'a, ()>> + 'a>;

/// Where the results of work that has begun will be, in the order of the work.
type Places<T> = Rc<RefCell<VecDeque<Rc<Cell<Option<T>>>>>>;

/// The results of all `futures`, in their order; all are under way at once.
pub(crate) async fn all<'a, I>(futures: I) -> Vec<<I::Item as Future>::Output>
where
    I: IntoIterator<IntoIter: 'a, Item: Future<Output: 'a> + 'a>,
{
    let mut together = Together::new(futures, usize::MAX);
    let mut results = Vec::new();
    while let Some(result) = together.next().await {
        results.push(result);
    }
    results
}

/// Futures of which only some are under way at once.
pub(crate) struct Together<'a, T> {
    work: Buffered<Iter<Work<'a>>>,
    places: Places<T>,
}

impl<'a, T: 'a> Together<'a, T> {
    /// At most `limit` of `futures` at once; each is made when its turn comes.
    pub(crate) fn new<I>(futures: I, limit: usize) -> Self
    where
        I: IntoIterator<IntoIter: 'a, Item: Future<Output = T> + 'a>,
    {
        let places = Places::<T>::default();
        let begun = places.clone();
        let work = futures.into_iter().map(move |future| {
            let place = Rc::new(Cell::new(None));
            begun.borrow_mut().push_back(place.clone());
            async move { place.set(Some(future.await)) }.boxed_local()
        });
        let work: Work<'a> = Box::new(work);
        Self {
            work: stream::iter(work).buffered(limit),
            places,
        }
    }

    /// The next result in the order of the futures; `None` after the last one.
    pub(crate) async fn next(&mut self) -> Option<T> {
        self.work.next().await?;
        let place = self.places.borrow_mut().pop_front();
        place.and_then(|place| place.take())
    }
}
