"""The superclasses of a data set, by name or written out."""

import numpy as np

from fedrepro.registry import require

# Krizhevsky, "Learning multiple layers of features from tiny images", 2009, https://www.cs.toronto.edu/~kriz/cifar.html. The
# labels of its 100 classes follow the alphabet.
CIFAR100 = {
    "aquatic_mammals": "beaver dolphin otter seal whale",
    "fish": "aquarium_fish flatfish ray shark trout",
    "flowers": "orchid poppy rose sunflower tulip",
    "food_containers": "bottle bowl can cup plate",
    "fruit_and_vegetables": "apple mushroom orange pear sweet_pepper",
    "household_electrical_devices": "clock keyboard lamp telephone television",
    "household_furniture": "bed chair couch table wardrobe",
    "insects": "bee beetle butterfly caterpillar cockroach",
    "large_carnivores": "bear leopard lion tiger wolf",
    "large_man-made_outdoor_things": "bridge castle house road skyscraper",
    "large_natural_outdoor_scenes": "cloud forest mountain plain sea",
    "large_omnivores_and_herbivores": "camel cattle chimpanzee elephant kangaroo",
    "medium_mammals": "fox porcupine possum raccoon skunk",
    "non-insect_invertebrates": "crab lobster snail spider worm",
    "people": "baby boy girl man woman",
    "reptiles": "crocodile dinosaur lizard snake turtle",
    "small_mammals": "hamster mouse rabbit shrew squirrel",
    "trees": "maple_tree oak_tree palm_tree pine_tree willow_tree",
    "vehicles_1": "bicycle bus motorcycle pickup_truck train",
    "vehicles_2": "lawn_mower rocket streetcar tank tractor",
}
NAMED = {"cifar100": CIFAR100}


def superclasses(where: str, text: str) -> list[np.ndarray]:
    """The classes of each superclass, int64, ascending: of "cifar100", or of classes written out as in "0-1-4 2-3".

    UserError that begins with `where` for anything else, and for a class in two superclasses or in none.
    """
    if text in NAMED:
        class_names = [names.split() for names in NAMED[text].values()]
        label_by_name = {name: label for label, name in enumerate(sorted(name for names in class_names for name in names))}
        return [np.sort([label_by_name[name] for name in names]) for names in class_names]
    groups = [group.split("-") for group in text.split()]
    is_well_formed = groups and all(word.isdecimal() for group in groups for word in group)
    rule = f'must be {" or ".join(NAMED)}, or classes joined by - and superclasses by a blank: "0-1-4 2-3"'
    require(bool(is_well_formed), where, text, rule)
    group_labels = [np.sort([int(word) for word in group]) for group in groups]
    classes = np.sort(np.concatenate(group_labels)).tolist()
    require(classes == list(range(len(classes))), where, text, f"must have every class from 0 to {classes[-1]} once")
    return group_labels
