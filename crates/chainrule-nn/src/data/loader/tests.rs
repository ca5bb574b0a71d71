use super::*;
use crate::data::TensorDataset;

fn set(n: usize) -> Arc<dyn Dataset> {
    let x: Vec<i64> = (0..n as i64).collect();
    let x = Tensor::try_from_slice(&x, [n]).unwrap();
    Arc::new(TensorDataset::try_new(&x, &x).unwrap())
}

fn take(batches: &mut dyn Batches, n: usize) -> Vec<Vec<i64>> {
    (0..n).map(|_| batches.next_batch().unwrap().x.to_vec::<i64>()).collect()
}

#[test]
fn an_epoch_holds_each_example_once_in_an_order_of_its_own() {
    for (drop_last, prefetch) in [(false, 0), (true, 0), (false, 3), (true, 1)] {
        let options = LoaderOptions { batch: 4, shuffle: Some(5), drop_last, prefetch };
        let mut loader = DataLoader::try_new(set(10), options).unwrap();
        let per_epoch = loader.per_epoch().unwrap() as usize;
        assert_eq!(per_epoch, if drop_last { 2 } else { 3 });
        let epochs = [0, 1].map(|_| take(&mut loader, per_epoch).concat());
        assert_eq!(loader.epoch(), 2);
        assert_ne!(epochs[0], epochs[1]);
        for mut epoch in epochs {
            epoch.sort();
            epoch.dedup();
            assert_eq!(epoch.len(), if drop_last { 8 } else { 10 });
        }
    }
    let mut in_order =
        DataLoader::try_new(set(5), LoaderOptions { batch: 3, ..LoaderOptions::default() })
            .unwrap();
    assert_eq!(take(&mut in_order, 3), [vec![0, 1, 2], vec![3, 4], vec![0, 1, 2]]);
}

#[test]
fn from_every_place_it_goes_on_as_if_it_had_not_stopped() {
    for prefetch in [0, 2] {
        let options = LoaderOptions { batch: 3, shuffle: Some(1), drop_last: false, prefetch };
        let mut loader = DataLoader::try_new(set(11), options).unwrap();
        let all = take(&mut loader, 20);
        for stop in 0..15 {
            let mut first = DataLoader::try_new(set(11), options).unwrap();
            take(&mut first, stop);
            let place = first.state_dict();
            take(&mut first, 2);
            for loader in [&mut first, &mut DataLoader::try_new(set(11), options).unwrap()] {
                loader.load_state_dict(&place).unwrap();
                assert_eq!(take(loader, 5), all[stop..stop + 5], "stopped after {stop}");
            }
        }
        let mut other = DataLoader::try_new(set(12), options).unwrap();
        let error = other.load_state_dict(&loader.state_dict()).unwrap_err().to_string();
        assert!(error.contains("examples 11, here examples is 12"), "{error}");
        assert!(other.load_state_dict(&StateDict::new()).is_err());
    }
}

#[test]
fn random_batches_go_on_too() {
    let new = || RandomBatches::try_new(set(50), 4, Generator::manual_seed(3)).unwrap();
    let mut batches = new();
    take(&mut batches, 7);
    let place = batches.state_dict();
    let rest = take(&mut batches, 3);
    let mut other = new();
    other.load_state_dict(&place).unwrap();
    assert_eq!(take(&mut other, 3), rest);
    assert!(other.load_state_dict(&StateDict::new()).is_err());
}

#[test]
fn what_cannot_be_loaded_is_an_error() {
    let batch = |batch, drop_last| LoaderOptions { batch, drop_last, ..LoaderOptions::default() };
    assert!(DataLoader::try_new(set(0), batch(2, false)).is_err());
    assert!(DataLoader::try_new(set(3), batch(0, false)).is_err());
    assert!(DataLoader::try_new(set(3), batch(4, true)).is_err());
    assert_eq!(DataLoader::try_new(set(3), batch(4, false)).unwrap().per_epoch(), Some(1));
}

/// Ranks that share out the batches of a step get all of them once, from any place on.
#[test]
fn shares_of_ranks_are_all_batches() {
    for prefetch in [0, 2] {
        for shuffle in [None, Some(3)] {
            let options = LoaderOptions { batch: 3, shuffle, drop_last: false, prefetch };
            let all = take(&mut DataLoader::try_new(set(11), options).unwrap(), 30);
            let mut ranks: Vec<_> =
                (0..3).map(|_| DataLoader::try_new(set(11), options).unwrap()).collect();
            for step in 0..6 {
                let of_step = ranks.iter_mut().enumerate().flat_map(|(rank, loader)| {
                    let share = rank * 5 / 3..(rank + 1) * 5 / 3;
                    loader.next_of(5, share).unwrap()
                });
                let of_step: Vec<_> = of_step.map(|batch| batch.x.to_vec::<i64>()).collect();
                assert_eq!(of_step, all[step * 5..][..5], "step {step}");
                // Another number of ranks goes on from the place of any of these.
                let place = ranks[step % 3].state_dict();
                ranks.iter_mut().for_each(|loader| loader.load_state_dict(&place).unwrap());
            }
            assert!(ranks[0].next_of(4, 4..4).unwrap().is_empty());
            assert_eq!(
                take(&mut ranks[0], 1),
                [all[4].clone()].map(|_| {
                    let mut plain = DataLoader::try_new(set(11), options).unwrap();
                    take(&mut plain, 35)[34].clone()
                })
            );
        }
    }
    let drawn = |own| {
        let generator = Generator::manual_seed(9);
        let mut random = RandomBatches::try_new(set(50), 4, generator).unwrap();
        let mut both = random.next_of(4, own).unwrap();
        both.extend(random.next_of(2, 1..2).unwrap());
        both.into_iter().map(|batch| batch.x.to_vec::<i64>()).collect::<Vec<_>>()
    };
    let (all, some) = (drawn(0..4), drawn(1..3));
    assert_eq!(some[..2], all[1..3]);
    assert_eq!(some[2], all[4]);
}
