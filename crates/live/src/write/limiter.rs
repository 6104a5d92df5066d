//! Limits writes per second, as kube-scheduler's client does: a bucket of `burst` tokens that
//! refills at `qps` per second. Upstream: client-go `util/flowcontrol`.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// A token bucket for writes, as client-go limits requests.
pub struct Limiter {
    /// Time per token; `None`: no limit.
    each: Option<Duration>,
    burst: u32,
    /// When the bucket would be full if no more tokens were taken.
    full_at: Mutex<Option<Instant>>,
}

impl Limiter {
    /// A full bucket. Not limited if `qps` is negative.
    pub fn new(qps: f32, burst: u32) -> Limiter {
        let each = (qps > 0.0).then(|| Duration::from_secs_f32(1.0 / qps));
        Limiter { each, burst: burst.max(1), full_at: Mutex::default() }
    }

    /// Waits for a token.
    pub async fn turn(&self) {
        if let Some(at) = self.reserve(Instant::now()) {
            sleep_until(at).await;
        }
    }

    /// Takes a token and returns when it may be used.
    fn reserve(&self, now: Instant) -> Option<Instant> {
        let each = self.each?;
        let mut full_at = self.full_at.lock().unwrap_or_else(PoisonError::into_inner);
        let full = full_at.unwrap_or(now).max(now) + each;
        *full_at = Some(full);
        // Filling an empty bucket takes `whole`: until `full - whole` it has no token.
        let whole = each * self.burst;
        full.checked_sub(whole).filter(|at| *at > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_then_one_by_one() {
        let (limiter, now) = (Limiter::new(10.0, 3), Instant::now());
        let waits: Vec<u128> =
            (0..5).map(|_| limiter.reserve(now).map_or(0, |at| (at - now).as_millis())).collect();
        assert_eq!(waits, [0, 0, 0, 100, 200]);
        let later = now + Duration::from_secs(60);
        assert_eq!(limiter.reserve(later), None);
    }

    #[test]
    fn a_negative_rate_is_no_limit() {
        let limiter = Limiter::new(-1.0, 1);
        assert!((0..1_000).all(|_| limiter.reserve(Instant::now()).is_none()));
    }
}
