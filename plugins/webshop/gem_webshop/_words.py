"""What the generated shop is made of. All of it is written for this project."""

from __future__ import annotations

from typing import NamedTuple


class Kind(NamedTuple):
    """A kind of product."""

    name: str
    category: str
    """From the widest to the narrowest, separated by ` > `."""
    nouns: str
    """The nouns of the name, separated by spaces."""
    attributes: str
    """Separated by commas."""
    options: str
    """Names of options in `OPTIONS`, separated by spaces."""
    prices: tuple[int, int]
    """The lowest and the highest, in dollars."""


BRANDS = (
    "Alvora", "Bexley", "Corvane", "Dunmore", "Estrel", "Fennick", "Galdor", "Havelin", "Istrad", "Jorvik", "Kelmar",
    "Lunova", "Mirrow", "Norvale", "Ostrand", "Pellwick", "Quorin", "Ravello", "Selwyn", "Tarvos", "Ulmar", "Vantry",
    "Wexcombe", "Yarrow", "Zephra",
)  # fmt: skip

OPTIONS: dict[str, tuple[str, ...]] = {
    "color": ("black", "white", "navy blue", "forest green", "burgundy", "charcoal gray", "mustard yellow", "teal"),
    "size": ("x-small", "small", "medium", "large", "x-large"),
    "shoe size": ("6", "7", "8", "9", "10", "11"),
    "capacity": ("8 ounces", "12 ounces", "16 ounces", "24 ounces", "32 ounces"),
    "length": ("3 feet", "6 feet", "10 feet", "15 feet"),
    "pack": ("pack of 1", "pack of 2", "pack of 4", "pack of 6"),
    "scent": ("lavender", "cedar", "citrus", "vanilla", "unscented"),
    "flavor": ("dark chocolate", "sea salt", "maple", "ginger", "wild berry"),
    "finish": ("matte", "brushed steel", "walnut", "oak", "antique brass"),
}

KINDS = (
    Kind(
        "rain jacket",
        "Clothing > Outdoor > Jackets",
        "rain jacket",
        "waterproof,lightweight,hooded,packable,taped seams,reflective trim,breathable lining",
        "color size",
        (35, 140),
    ),
    Kind(
        "wool sweater",
        "Clothing > Knitwear > Sweaters",
        "wool sweater",
        "machine washable,crew neck,slim fit,merino blend,ribbed cuffs,long sleeve,itch free",
        "color size",
        (28, 110),
    ),
    Kind(
        "linen shirt",
        "Clothing > Tops > Shirts",
        "linen shirt",
        "button down,short sleeve,relaxed fit,wrinkle resistant,chest pocket,quick drying,spread collar",
        "color size",
        (18, 75),
    ),
    Kind(
        "yoga pants",
        "Clothing > Sportswear > Trousers",
        "yoga pants",
        "high waist,four way stretch,side pockets,moisture wicking,squat proof,flat seams,ankle length",
        "color size",
        (15, 70),
    ),
    Kind(
        "winter gloves",
        "Clothing > Accessories > Gloves",
        "winter gloves",
        "touchscreen fingertips,fleece lined,windproof,elastic wrist,non slip palm,water repellent,insulated",
        "color size",
        (9, 48),
    ),
    Kind(
        "running shoes",
        "Shoes > Sport > Running",
        "running shoes",
        "arch support,mesh upper,rubber sole,cushioned heel,wide toe box,reflective laces,removable insole",
        "color shoe-size",
        (40, 160),
    ),
    Kind(
        "hiking boots",
        "Shoes > Outdoor > Boots",
        "hiking boots",
        "ankle support,water resistant,lugged sole,padded collar,toe guard,steel shank,speed hooks",
        "color shoe-size",
        (55, 190),
    ),
    Kind(
        "house slippers",
        "Shoes > Indoor > Slippers",
        "house slippers",
        "memory foam,anti skid,faux fur,indoor outdoor,closed back,hand wash,felted wool",
        "color shoe-size",
        (12, 50),
    ),
    Kind(
        "travel backpack",
        "Luggage > Bags > Backpacks",
        "travel backpack",
        "laptop sleeve,hidden pocket,carry on size,usb port,padded straps,chest strap,luggage strap",
        "color size",
        (30, 130),
    ),
    Kind(
        "canvas tote",
        "Luggage > Bags > Totes",
        "canvas tote",
        "inner pocket,zip closure,reinforced handles,foldable,heavy duty,flat bottom,key clip",
        "color pack",
        (8, 45),
    ),
    Kind(
        "desk lamp",
        "Home > Lighting > Lamps",
        "desk lamp",
        "dimmable,touch control,adjustable arm,eye caring,memory function,clamp mount,energy saving",
        "color finish",
        (18, 90),
    ),
    Kind(
        "floor rug",
        "Home > Textiles > Rugs",
        "floor rug",
        "stain resistant,low pile,non shedding,pet friendly,hand woven,reversible,fade resistant",
        "color size",
        (35, 220),
    ),
    Kind(
        "throw pillow",
        "Home > Textiles > Pillows",
        "throw pillow",
        "hidden zipper,velvet cover,down alternative,double sided,tufted,hypoallergenic,washable cover",
        "color pack",
        (10, 55),
    ),
    Kind(
        "wall clock",
        "Home > Decor > Clocks",
        "wall clock",
        "silent movement,battery operated,large numerals,glass cover,frameless,atomic time,easy to hang",
        "finish size",
        (14, 85),
    ),
    Kind(
        "scented candle",
        "Home > Decor > Candles",
        "scented candle",
        "soy wax,long burning,cotton wick,lead free,hand poured,reusable jar,dye free",
        "scent pack",
        (7, 40),
    ),
    Kind(
        "book shelf",
        "Home > Furniture > Shelves",
        "book shelf",
        "easy assembly,five tier,anti tip,solid wood,space saving,adjustable feet,open back",
        "finish size",
        (45, 240),
    ),
    Kind(
        "coffee mug",
        "Kitchen > Drinkware > Mugs",
        "coffee mug",
        "dishwasher safe,microwave safe,spill proof lid,double wall,large handle,chip resistant,stoneware",
        "color capacity",
        (7, 35),
    ),
    Kind(
        "water bottle",
        "Kitchen > Drinkware > Bottles",
        "water bottle",
        "leak proof,bpa free,vacuum insulated,wide mouth,straw lid,sweat free,carry loop",
        "color capacity",
        (9, 45),
    ),
    Kind(
        "chef knife",
        "Kitchen > Cutlery > Knives",
        "chef knife",
        "full tang,high carbon,ergonomic grip,hand forged,rust proof,razor sharp,blade guard",
        "finish size",
        (20, 150),
    ),
    Kind(
        "cutting board",
        "Kitchen > Tools > Boards",
        "cutting board",
        "juice groove,knife friendly,non porous,end grain,hanging hole,odor resistant,rubber feet",
        "finish size",
        (12, 80),
    ),
    Kind(
        "frying pan",
        "Kitchen > Cookware > Pans",
        "frying pan",
        "non stick,oven safe,induction ready,cool handle,scratch resistant,even heating,pour spout",
        "color size",
        (18, 120),
    ),
    Kind(
        "storage jars",
        "Kitchen > Storage > Jars",
        "storage jars",
        "airtight,stackable,bamboo lid,food grade,wide opening,label included,thick glass",
        "capacity pack",
        (12, 60),
    ),
    Kind(
        "trail mix",
        "Food > Snacks > Nuts",
        "trail mix",
        "gluten free,low sodium,non gmo,resealable bag,high protein,no added sugar,plant based",
        "flavor pack",
        (6, 38),
    ),
    Kind(
        "herbal tea",
        "Food > Drinks > Tea",
        "herbal tea",
        "caffeine free,organic,loose leaf,individually wrapped,fair trade,kosher,hand picked",
        "flavor pack",
        (5, 32),
    ),
    Kind(
        "granola bars",
        "Food > Snacks > Bars",
        "granola bars",
        "nut free,high fiber,soft baked,whole grain,soy free,dairy free,low calorie",
        "flavor pack",
        (6, 36),
    ),
    Kind(
        "hand cream",
        "Beauty > Skin > Creams",
        "hand cream",
        "fast absorbing,fragrance free,paraben free,shea butter,cruelty free,travel size,dermatologist tested",
        "scent pack",
        (5, 34),
    ),
    Kind(
        "bath towel",
        "Home > Textiles > Towels",
        "bath towel",
        "highly absorbent,ring spun,quick dry,double stitched,extra soft,lint free,hanging loop",
        "color pack",
        (10, 60),
    ),
    Kind(
        "bar soap",
        "Beauty > Bath > Soap",
        "bar soap",
        "cold process,palm oil free,sensitive skin,exfoliating,vegan,moisturizing,long lasting",
        "scent pack",
        (4, 26),
    ),
    Kind(
        "charging cable",
        "Electronics > Accessories > Cables",
        "charging cable",
        "fast charging,braided,tangle free,data transfer,aluminum plug,right angle,strain relief",
        "color length",
        (6, 30),
    ),
    Kind(
        "wireless headphones",
        "Electronics > Audio > Headphones",
        "headphones",
        "noise cancelling,foldable design,hands free,bass boost,over ear,multipoint pairing,long battery",
        "color finish",
        (25, 210),
    ),
    Kind(
        "portable speaker",
        "Electronics > Audio > Speakers",
        "speaker",
        "shower proof,stereo pairing,dust tight,party lights,floating,voice assistant,rugged",
        "color finish",
        (20, 150),
    ),
    Kind(
        "computer mouse",
        "Electronics > Computers > Mice",
        "computer mouse",
        "silent click,left handed,vertical grip,rechargeable,programmable buttons,adjustable dpi,nano receiver",
        "color pack",
        (9, 70),
    ),
    Kind(
        "phone stand",
        "Electronics > Accessories > Stands",
        "phone stand",
        "foldable base,weighted,height adjustable,case friendly,cable slot,silicone pads,one hand use",
        "color finish",
        (7, 38),
    ),
    Kind(
        "extension cord",
        "Electronics > Power > Cords",
        "extension cord",
        "surge protection,flat plug,grounded,child safe,outdoor rated,switch control,flame retardant",
        "color length",
        (8, 44),
    ),
    Kind(
        "garden hose",
        "Garden > Watering > Hoses",
        "garden hose",
        "kink free,expandable,brass fittings,drinking safe,burst proof,uv resistant,crush resistant",
        "color length",
        (18, 85),
    ),
    Kind(
        "plant pot",
        "Garden > Planting > Pots",
        "plant pot",
        "drainage hole,self watering,frost proof,saucer included,recycled plastic,terracotta look,light weight",
        "color size",
        (8, 60),
    ),
    Kind(
        "camping chair",
        "Sports > Camping > Chairs",
        "camping chair",
        "cup holder,folding frame,high back,carry bag,mesh seat,steel legs,side pouch",
        "color size",
        (22, 110),
    ),
    Kind(
        "sleeping bag",
        "Sports > Camping > Bedding",
        "sleeping bag",
        "two way zipper,mummy shape,compression sack,draft collar,down filled,three season,snag free",
        "color size",
        (30, 170),
    ),
    Kind(
        "jump rope",
        "Sports > Fitness > Ropes",
        "jump rope",
        "ball bearing,adjustable length,foam handles,weighted grips,tangle resistant,digital counter,beaded",
        "color length",
        (6, 32),
    ),
    Kind(
        "dog leash",
        "Pets > Dogs > Leashes",
        "dog leash",
        "padded handle,chew proof,shock absorbing,reflective stitching,double handle,swivel clip,traffic grip",
        "color length",
        (8, 42),
    ),
)

REVIEWS = (
    "Arrived on time and does what it should.",
    "I bought a second one for my sister.",
    "Good value, although the box was dented.",
    "Better than the one it replaced.",
    "It looks just like the picture.",
    "Not perfect, but I would buy it again.",
    "My favorite purchase of this year.",
    "Used it every day for a month without trouble.",
)
